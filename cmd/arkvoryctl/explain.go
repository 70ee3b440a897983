package main

import (
	"errors"
	"fmt"

	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/sim"
)

// named says what a person calls a field of the settings: a flag where there is one, else the field of a scenario file.
var named = map[string]string{
	"Clients": "--clients", "Size": "--size", "LinkBytesPerSecond": "--link", "ClientBytesPerSecond": "--client-rate", "Slow.Part": "--slow",
	"Slow.BytesPerSecond": "--slow", "ClientsPerPrincipal": "field clientsPerPrincipal", "Arrivals.Over": "--burst or --ramp", "Arrivals.Waves": "--waves",
	"Arrivals.Waves.Part": "--waves", "Arrivals.Waves.Every": "--waves",
	"Arrivals.PerHour": "--poisson", "Arrivals.Load": "--poisson", "Classes": "--classes", "Plain": "--plain", "Plain.Profile": "--plain",
	"Plain.Part": "--plain", "Hold": "field hold.time", "HoldLimit": "field hold.limit", "HoldPerPrincipal": "field hold.perPrincipal",
	"RangeBytes": "field rangeSize", "RangesAtOnce": "field rangesAtOnce", "Jitter": "field jitter", "LeaveWaiting": "field leaveWaiting",
	"LeaveMidway": "field leaveMidway", "BreaksPerGiB": "field breaksPerGiB", "NATClients": "field nat", "Limit": "--limit",
	"InvariantsEvery": "--invariants", "Begin": "--begin or field begin",
	"Sessions": "--slots", "SessionsElastic": "--elastic", "Reserve": "field reserve", "PerPrincipal": "field perPrincipal",
	"AgingEvery": "--aging", "SessionMinBytes": "field minBytes", "IdleFor": "field idle", "RangesPerSession": "field rangesPerSession",
	"BandBytesPerSecond": "field band",
}

// explain says of each fault of the settings what its flag or field is called.
func explain(err error) error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, one := range joined.Unwrap() {
			all = append(all, explain(one))
		}
		return errors.Join(all...)
	}
	var (
		setting *sim.FieldError
		policy  *queue.PolicyError
		name    string
	)
	switch {
	case errors.As(err, &setting):
		name = setting.Field
	case errors.As(err, &policy):
		name = policy.Field
	}
	if shown := named[name]; shown != "" {
		return fmt.Errorf("%s: %w", shown, err)
	}
	return err
}
