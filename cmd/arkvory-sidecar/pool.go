package main

import (
	"runtime"
	"strconv"

	"github.com/arkvory/sidecar/config"
	"github.com/arkvory/sidecar/proxy/upstream/control"
)

// fallbackPolicies are the words of ARKVORY_UPSTREAM_FALLBACK_POLICY.
var fallbackPolicies = map[string]control.FallbackPolicy{
	"off": control.FallbackOff, "on-outage": control.FallbackOnOutage, "always": control.FallbackAlways,
}

// poolSettings are the settings of the upstream pool's control plane.
func poolSettings(cfg config.Config) control.Settings {
	set := control.Default(runtime.GOMAXPROCS(0))
	if n, err := strconv.Atoi(cfg.UpstreamFloor); err == nil {
		set.FloorMode, set.FloorStatic = control.Static, n
	}
	set.FloorIdle, set.FloorHold = cfg.UpstreamFloorIdle, cfg.UpstreamFloorHold
	set.ResolveEvery = cfg.UpstreamResolve
	set.ResolveMin, set.ResolveMax = min(set.ResolveMin, set.ResolveEvery), max(set.ResolveMax, set.ResolveEvery)
	set.ResolveRetry = min(set.ResolveRetry, set.ResolveEvery)
	set.Shadow = cfg.UpstreamShadow
	set.Silent = cfg.UpstreamProbe
	set.QuarantineAfter = cfg.UpstreamQuarantine
	if set.QuarantineAfter > 0 {
		set.DegradeAfter = min(set.DegradeAfter, set.QuarantineAfter)
	}
	set.SlowStart = cfg.UpstreamSlowStart
	set.Fallback = fallbackPolicies[cfg.UpstreamFallbackPolicy]
	set.FallbackAfter, set.FallbackBack = cfg.UpstreamFallbackAfter, cfg.UpstreamFallbackBack
	return set
}
