//go:build gate

package house_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// poolPage is the metrics page of one moment, by series.
type poolPage map[string]float64

// Series of the pool that the gates read.
const (
	seriesCovered    = "arkvory_upstream_coverage"
	seriesFallback   = "arkvory_upstream_fallback"
	seriesGeneration = "arkvory_upstream_generation"
	seriesFloor      = "arkvory_upstream_floor"
	seriesResumedOK  = `arkvory_upstream_resumes_total{outcome="ok"}`
	seriesResumeEnds = `arkvory_upstream_resumes_total{outcome="given_up"}`
	seriesChanged    = `arkvory_upstream_resumes_total{outcome="changed"}`
	seriesDialled    = `arkvory_upstream_dials_total{result="ok"}`
	seriesUndialled  = `arkvory_upstream_dials_total{result="error"}`
)

func writersIn(state string) string { return `arkvory_upstream_writers{state="` + state + `"}` }
func endpointsIn(health string) string {
	return `arkvory_upstream_endpoints{state="` + health + `"}`
}
func generationsThat(event string) string {
	return `arkvory_upstream_generations_total{event="` + event + `"}`
}

// pool reads the metrics page.
func (s *sidecar) pool() poolPage {
	s.t.Helper()
	text, err := s.get("/metrics")
	if err != nil {
		s.t.Fatal(err)
	}
	page := poolPage{}
	for line := range strings.Lines(string(text)) {
		if at := strings.LastIndexByte(line, ' '); at > 0 && line[0] != '#' {
			if v, err := strconv.ParseFloat(strings.TrimSpace(line[at+1:]), 64); err == nil {
				page[line[:at]] = v
			}
		}
	}
	return page
}

// of returns a series, which must exist.
func (p poolPage) of(t *testing.T, series string) int {
	t.Helper()
	v, ok := p[series]
	if !ok {
		t.Errorf("no series %s", series)
	}
	return int(v)
}

// sum adds all series of a family that contain text.
func (p poolPage) sum(family, text string) (n int) {
	for series, v := range p {
		if strings.HasPrefix(series, family+"{") && strings.Contains(series, text) {
			n += int(v)
		}
	}
	return n
}

// breaks and opened are the two sides of acceptance 5.2.
func (p poolPage) breaks() int             { return p.sum("arkvory_upstream_breaks_total", "") }
func (p poolPage) opened(t *testing.T) int { return p.of(t, seriesResumedOK) }

// poolDump is what the gates read of /debug/upstream.
type poolDump struct {
	Covered, Fallback bool
	Groups            []struct {
		Name        string
		Generation  uint64
		Generations []dumpGeneration
		Endpoints   []dumpEndpoint
	}
}

type dumpGeneration struct {
	ID                 uint64
	State              string
	Endpoints, Writers int
	GateHave, GateNeed int
}

type dumpEndpoint struct {
	Address, Health, Cause string
	Floor, Exchanges       int
	Writers                map[string]int
}

// dump reads the debug page of the pool. Any goroutine may call it.
func (s *sidecar) dump() (d poolDump) {
	s.t.Helper()
	text, err := s.get("/debug/upstream")
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	if err != nil || len(d.Groups) == 0 {
		s.t.Errorf("debug page of the pool: %v: %.400s", err, text)
	}
	return d
}

// String is one line for a log of what happened.
func (d poolDump) String() string {
	text := ""
	for _, g := range d.Groups {
		for _, gen := range g.Generations {
			text += fmt.Sprintf("generation %d %s %d/%d of %d writers; ", gen.ID, gen.State, gen.GateHave, gen.GateNeed, gen.Writers)
		}
		for _, e := range g.Endpoints {
			text += fmt.Sprintf("%s %s %v, %d running, %s; ", e.Address, e.Health, e.Writers, e.Exchanges, e.Cause)
		}
	}
	return text
}

// reload sends SIGHUP.
func (s *sidecar) reload() { _ = syscall.Kill(s.pid, syscall.SIGHUP) }

// poolOrigin is the sidecar's upstream for the origins of one port behind the name.
func poolOrigin(port string) string { return poolName + ":" + port }

// poolVariables are those of a sidecar that asks the gate's name server every second.
func poolVariables(names *nameServer, more map[string]string) map[string]string {
	variables := map[string]string{"ARKVORY_UPSTREAM_RESOLVER": names.address, "ARKVORY_UPSTREAM_RESOLVE_SECONDS": "1"}
	for name, value := range more {
		variables[name] = value
	}
	return variables
}

// gateSeed is the seed of what a gate draws: GATE_SEED=n repeats a run.
func gateSeed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("GATE_SEED")
	if text == "" {
		return 1
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("GATE_SEED=%q: a whole number", text)
	}
	return n
}
