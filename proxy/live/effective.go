package live

import (
	"strings"
	"time"

	"github.com/arkvory/sidecar/proxy/admin"
	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/window"
)

// Bounds of the record's fields beyond a queue's policy.
const (
	MaxPrincipals       = 1024      // entries of principals
	MaxPrincipalIDBytes = 256       // of a principal id
	MaxQuotaBytes       = 1<<53 - 1 // the largest whole number that every reader of JSON keeps
)

// Effective is everything that a record decides, in the form in which the proxy goes by it. It is immutable once it was handed to Settings.Apply.
type Effective struct {
	Policy     queue.Policy
	Windows    [queue.Classes]*window.Schedule // nil = always open
	Principals map[string]PrincipalRule        // by principal id, at most MaxPrincipals; nil = none
	Quotas     QuotaRule                       // of every principal without its own

	specs map[string]window.Spec // what Windows were made of, to show
}

// PrincipalRule is what the record says about one principal.
type PrincipalRule struct {
	// Class counts only with HasClass, and then above what the principals file says.
	Class    queue.Class
	HasClass bool
	// BytesPerDay and BytesPerWeek are its own quotas: 0 = none, Inherited = those of every principal.
	BytesPerDay, BytesPerWeek int64
}

// Inherited is the quota of a principal for which the record has none of its own.
const Inherited int64 = -1

// QuotaRule is the quota of every principal without its own.
type QuotaRule struct {
	BytesPerDay, BytesPerWeek int64          // download body bytes; 0 = none
	Zone                      *time.Location // in which days and weeks begin, for all quotas; nil = UTC
}

// baseOf is the environment without a record.
func baseOf(base queue.Policy) Effective { return Effective{Policy: base} }

// effectiveOf is the environment with the overrides, or every fault of it by the field's name in the overrides.
func effectiveOf(base queue.Policy, o overrides) (Effective, faults) {
	policy, wrong := policyWith(base, o)
	e := Effective{Policy: policy}
	e.windows(o.Windows, &wrong)
	e.principals(o.Principals, &wrong)
	e.quotas(o.Quotas, &wrong)
	return e, wrong
}

func (e *Effective) windows(of *windowSpecs, wrong *faults) {
	if of == nil {
		return
	}
	e.specs = *of
	for c := range e.Windows {
		name := queue.Class(c).String()
		spec, ok := e.specs[name]
		if !ok {
			continue
		}
		var found []window.Fault
		e.Windows[c], found = window.Compile(spec)
		for _, fault := range found {
			wrong.add("windows."+name+"."+fault.Field, fault.Rule, plain(fault.Example))
		}
	}
}

func (e *Effective) principals(of *principalTexts, wrong *faults) {
	if of == nil {
		return
	}
	e.Principals = make(map[string]PrincipalRule, len(*of))
	for _, one := range *of {
		rule := PrincipalRule{BytesPerDay: Inherited, BytesPerWeek: Inherited}
		if one.Class != nil {
			var err error
			if rule.Class, err = queue.ParseClass(*one.Class); err != nil {
				wrong.add(one.field+".class", classRule, "bulk")
			}
			rule.HasClass = true
		}
		amount(&rule.BytesPerDay, one.BytesPerDay, one.field+".bytesPerDay", wrong)
		amount(&rule.BytesPerWeek, one.BytesPerWeek, one.field+".bytesPerWeek", wrong)
		agree(rule.BytesPerDay, rule.BytesPerWeek, one.field, wrong)
		e.Principals[one.id] = rule
	}
}

func (e *Effective) quotas(of *quotaText, wrong *faults) {
	if of == nil {
		return
	}
	amount(&e.Quotas.BytesPerDay, of.BytesPerDay, "quotas.bytesPerDay", wrong)
	amount(&e.Quotas.BytesPerWeek, of.BytesPerWeek, "quotas.bytesPerWeek", wrong)
	agree(e.Quotas.BytesPerDay, e.Quotas.BytesPerWeek, "quotas", wrong)
	if of.Zone != nil {
		var ok bool
		if e.Quotas.Zone, ok = zone(*of.Zone); !ok {
			wrong.add("quotas.zone", zoneRule, "Europe/Berlin")
		}
	}
}

// amount takes a number of bytes over that stands in the record.
func amount(to *int64, n *int64, field string, wrong *faults) {
	switch {
	case n == nil:
	case *n < 0 || *n > MaxQuotaBytes:
		wrong.add(field, bytesRule, bytesExample)
	default:
		*to = *n
	}
}

// agree finds a day's quota that its own week's never lets anybody use up. A quota that is inherited is not judged here: the smaller one counts.
func agree(day, week int64, field string, wrong *faults) {
	if day > 0 && week > 0 && day > week {
		wrong.add(field+".bytesPerDay", "at most bytesPerWeek, or 0 for none", week)
	}
}

// zone returns the zone of an IANA name. The zone of the machine is no name that means the same everywhere.
func zone(name string) (*time.Location, bool) {
	if name == "" || name == "Local" || len(name) > window.MaxZoneBytes {
		return nil, false
	}
	found, err := time.LoadLocation(name)
	return found, err == nil
}

// effective shows what is in force under the names of the overrides.
func effective(e Effective) admin.EffectiveSettings {
	p := e.Policy
	doc := admin.EffectiveSettings{
		Strategy: p.Strategy.String(), Sessions: p.Sessions, Reserve: p.Reserve, PerPrincipal: p.PerPrincipal,
		Weights: admin.ByClass{Interactive: p.Weights[queue.Interactive], Release: p.Weights[queue.Release], Bulk: p.Weights[queue.Bulk],
			Background: p.Weights[queue.Background]},
		SessionMinBytes: p.SessionMinBytes, IdleSeconds: int64(p.IdleFor / time.Second), AgingMinutes: int64(p.AgingEvery / time.Minute),
		Preempt: p.Preempt, RangesPerSession: p.RangesPerSession, SessionsElastic: max(p.SessionsElastic, p.Sessions),
		Mode:    p.Mode.String(),
		Windows: make(map[string]admin.WindowSettings, len(e.specs)), Principals: make(map[string]admin.PrincipalSettings, len(e.Principals)),
		Quotas: admin.QuotaSettings{BytesPerDay: e.Quotas.BytesPerDay, BytesPerWeek: e.Quotas.BytesPerWeek, Zone: "UTC"},
	}
	if e.Quotas.Zone != nil {
		doc.Quotas.Zone = e.Quotas.Zone.String()
	}
	for class, spec := range e.specs {
		w := admin.WindowSettings{Zone: spec.Zone, OutsideShare: spec.OutsideShare}
		if w.Zone == "" {
			w.Zone = "UTC"
		}
		for _, s := range spec.Open {
			w.Open = append(w.Open, admin.SpanSettings(s))
		}
		doc.Windows[class] = w
	}
	for id, rule := range e.Principals {
		var one admin.PrincipalSettings
		if rule.HasClass {
			one.Class = rule.Class.String()
		}
		one.BytesPerDay, one.BytesPerWeek = own(rule.BytesPerDay), own(rule.BytesPerWeek)
		doc.Principals[id] = one
	}
	return doc
}

// own is a principal's own quota, nil for one that it inherits.
func own(n int64) *int64 {
	if n == Inherited {
		return nil
	}
	return &n
}

// Admission words how large downloads are admitted under a policy: "sessions", or "per-request" under the strategy shared.
func Admission(p queue.Policy) string {
	if p.Strategy == queue.Shared {
		return "per-request"
	}
	return "sessions"
}

// bounded cuts a foreign text that an answer repeats.
func bounded(text string, limit int) string {
	if len(text) > limit {
		return strings.ToValidUTF8(text[:limit], "")
	}
	return text
}
