package sim

import (
	"slices"
	"strings"
	"time"
)

// Profile is how a stock client behaves whose requests know nothing of the queue.
type Profile struct {
	Name     string
	Delays   []time.Duration // before each repetition; after the last the client gives up
	Patience time.Duration   // silence after which it ends its request itself
	Resumes  bool            // a broken body is asked for from its first missing byte
	Obeys    bool            // waits at least what Retry-After says, when that is not beyond ObeysUpTo
	UpTo     time.Duration
}

func doubling(first time.Duration, times int) []time.Duration {
	all := make([]time.Duration, times)
	for i := range all {
		all[i] = first << i
	}
	return all
}

func seconds(all ...float64) []time.Duration {
	out := make([]time.Duration, len(all))
	for i, s := range all {
		out[i] = time.Duration(s * float64(time.Second))
	}
	return out
}

var profiles = []Profile{
	{Name: "curl", Patience: time.Minute},
	{Name: "curl-retry", Delays: seconds(1, 2, 4, 8, 16), Patience: time.Minute, Resumes: true, Obeys: true, UpTo: 10 * time.Minute},
	{Name: "apt", Delays: seconds(1, 2, 4), Patience: 30 * time.Second, Resumes: true},
	{Name: "npm", Delays: seconds(10, 60), Patience: time.Minute},
	{Name: "docker", Delays: seconds(0.25, 0.5, 1, 1, 1), Patience: time.Minute},
	{Name: "docker-steps", Delays: seconds(5, 10, 15, 20, 25), Patience: time.Minute, Resumes: true},
	{Name: "crane", Delays: seconds(1, 3), Patience: time.Minute},
	{Name: "git-lfs", Delays: doubling(250*time.Millisecond, 8), Patience: 30 * time.Second, Resumes: true, Obeys: true, UpTo: 10 * time.Minute},
	{Name: "aria2", Delays: slices.Repeat(seconds(5), 4), Patience: time.Minute, Resumes: true},
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
