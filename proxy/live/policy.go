package live

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/arkvory/sidecar/queue"
)

// policyWith returns the environment's policy with the overrides, or every fault of it by the field's name in the overrides.
func policyWith(base queue.Policy, o overrides) (queue.Policy, faults) {
	var wrong faults
	p := base
	if o.Sessions != nil {
		resize(&p, base, *o.Sessions)
	}
	put(&p.Reserve, o.Reserve)
	put(&p.PerPrincipal, o.PerPrincipal)
	put(&p.RangesPerSession, o.RangesPerSession)
	put(&p.SessionsElastic, o.SessionsElastic)
	if n := o.SessionsElastic; n != nil && *n <= 0 { // 0 is none for a policy, and below the rule of the field
		wrong.add("sessionsElastic", "a whole number "+strconv.Itoa(p.Sessions)+"..1024", queue.MaxSessions)
		p.SessionsElastic = 0
	}
	if o.Strategy != nil {
		var err error
		if p.Strategy, err = queue.ParseStrategy(*o.Strategy); err != nil {
			wrong.add("strategy", strategyRule, "ordered")
			p.Strategy = base.Strategy
		}
	}
	if o.Mode != nil {
		var err error
		if p.Mode, err = queue.ParseMode(*o.Mode); err != nil {
			wrong.add("mode", modeRule, "normal")
			p.Mode = base.Mode
		}
	}
	if o.Weights != nil {
		for c := range p.Weights {
			put(&p.Weights[c], o.Weights.of(queue.Class(c)))
		}
	}
	if o.SessionMinBytes != nil {
		p.SessionMinBytes = *o.SessionMinBytes
	}
	if o.IdleSeconds != nil {
		p.IdleFor = span(*o.IdleSeconds, time.Second)
	}
	if o.AgingMinutes != nil {
		p.AgingEvery = span(*o.AgingMinutes, time.Minute)
	}
	if o.Preempt != nil {
		p.Preempt = *o.Preempt
	}
	judge(p, &wrong)
	return p, wrong
}

// resize changes the slots and lets what they bound follow; see the package doc. An impossible number stays as it is, and is what judge finds.
func resize(p *queue.Policy, base queue.Policy, sessions int64) {
	put(&p.Sessions, &sessions)
	fits := min(max(p.Sessions, 1), queue.MaxSessions)
	p.Reserve = min(base.Reserve, fits-1)
	p.PerPrincipal = min(base.PerPrincipal, fits)
	p.SessionsElastic = fits
	if base.SessionsElastic > base.Sessions {
		p.SessionsElastic = max(base.SessionsElastic, fits)
	}
}

// judge holds a policy to the rules and words its faults in the fields and units of the overrides.
func judge(p queue.Policy, wrong *faults) {
	for _, fault := range each(p.Validate()) {
		if fault.Field == "QueueLimit" || fault.Field == "QueuePerPrincipal" { // the environment's: it is sessions that does not fit it
			limit := strconv.Itoa(p.QueueLimit)
			wrong.add("sessions", "at most ARKVORY_DOWNLOAD_QUEUE_LIMIT, which is "+limit, p.QueueLimit)
			continue
		}
		class, isWeight := strings.CutPrefix(fault.Field, "Weights.")
		switch {
		case isWeight:
			wrong.add("weights."+class, fault.Rule, plain(fault.Example))
		case fault.Field == "IdleFor":
			wrong.add("idleSeconds", "a whole number 1..3600", 30)
		case fault.Field == "AgingEvery":
			wrong.add("agingMinutes", "a whole number 0..10080, 0 = off", 15)
		default:
			wrong.add(strings.ToLower(fault.Field[:1])+fault.Field[1:], fault.Rule, plain(fault.Example))
		}
	}
}

// each unfolds the joined faults of a policy.
func each(err error) []*queue.PolicyError {
	var found []*queue.PolicyError
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	for _, one := range joined.Unwrap() {
		var fault *queue.PolicyError
		if errors.As(one, &fault) {
			found = append(found, fault)
		}
	}
	return found
}

// plain is an example as the JSON it would be sent as: numbers, lists and objects as they are, all else as a text.
func plain(example string) any {
	if _, err := strconv.ParseInt(example, 10, 64); err == nil {
		return json.Number(example)
	}
	if json.Valid([]byte(example)) {
		return json.RawMessage(example)
	}
	return example
}

// put takes a changed whole number over.
func put(field *int, n *int64) {
	if n != nil {
		*field = int(min(max(*n, -1<<31), 1<<31-1))
	}
}

// span turns units into a duration; what is far beyond any rule stays beyond it without overflow.
func span(n int64, unit time.Duration) time.Duration {
	return time.Duration(min(max(n, -1), 1<<20)) * unit
}
