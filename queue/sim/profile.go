package sim

import (
	"slices"
	"strings"
	"time"
)

// Profile is how a stock client behaves whose requests know nothing of the queue.
type Profile struct {
	Name       string
	Delays     []time.Duration // before each repetition after a refusal; after the last the client gives up
	Reconnects []time.Duration // the same after a broken body or its own patience; nil = Delays. Both use up one budget
	Patience   time.Duration   // silence after which it ends its request itself
	Resumes    bool            // a broken body is asked for from its first missing byte; false: it ends the client's work
	Obeys      bool            // waits exactly what Retry-After says, when that is not beyond UpTo
	UpTo       time.Duration
}

// patient is longer than anybody is held: the client waits for its answer as long as it takes.
const patient = time.Hour

func seconds(all ...float64) []time.Duration {
	out := make([]time.Duration, len(all))
	for i, s := range all {
		out[i] = time.Duration(s * float64(time.Second))
	}
	return out
}

// wgetDelays are the pauses of wget between its 20 tries: a second more each time, up to ten.
var wgetDelays = append(seconds(1, 2, 3, 4, 5, 6, 7, 8, 9), slices.Repeat(seconds(10), 10)...)

// profiles are what clients were measured to do: which statuses they repeat after, how often and when, which silence they bear,
// and what a body that breaks in the middle is to them. git-lfs is refused with 429 by the sidecar, which is what it obeys.
var profiles = []Profile{
	{Name: "curl", Patience: patient},
	{Name: "curl-retry", Delays: seconds(1, 2, 4, 8, 16), Patience: patient, Resumes: true, Obeys: true, UpTo: 10 * time.Minute},
	{Name: "wget", Reconnects: wgetDelays, Patience: patient, Resumes: true},
	{Name: "apt", Delays: seconds(1, 2, 4), Patience: 30 * time.Second, Resumes: true},
	{Name: "npm", Delays: seconds(10, 60), Patience: patient},
	{Name: "docker", Delays: seconds(0.25, 0.5, 1, 1, 1), Patience: patient, Resumes: true},
	{Name: "docker-steps", Delays: seconds(5, 10, 15, 20, 25), Patience: patient, Resumes: true},
	{Name: "crane", Delays: seconds(1, 3), Patience: patient},
	{Name: "git-lfs", Delays: seconds(0.25, 0.5, 1, 2, 4, 8, 10, 10), Patience: 30 * time.Second, Resumes: true, Obeys: true, UpTo: 10 * time.Minute},
	{Name: "aria2", Reconnects: seconds(0, 0, 0, 0), Patience: time.Minute, Resumes: true},
	{Name: "aria2-wait", Delays: seconds(3, 3, 3, 3), Patience: time.Minute, Resumes: true},
	{Name: "impatient", Delays: seconds(1, 2), Patience: 15 * time.Second},
}

// Profiles returns the known profiles. The values are what the clients do with their usual settings.
func Profiles() []Profile { return slices.Clone(profiles) }

// FindProfile returns the profile of that name.
func FindProfile(name string) (Profile, bool) {
	i := slices.IndexFunc(profiles, func(p Profile) bool { return p.Name == name })
	if i < 0 {
		return Profile{}, false
	}
	return profiles[i], true
}

func profileNames() string {
	names := make([]string, len(profiles))
	for i, p := range profiles {
		names[i] = p.Name
	}
	return strings.Join(names, ", ")
}
