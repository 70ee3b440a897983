package replay_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/memory"
	"github.com/arkvory/sidecar/queue/replay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const mib = 1 << 20

func policy(slots int) queue.Policy {
	p := queue.DefaultPolicy(slots)
	p.SessionMinBytes, p.BandBytesPerSecond, p.AgingEvery = 0, 10*mib, time.Minute
	return p
}

// fleet drives a queue through a random history in virtual time, with policies that change, and returns its log. Everything a client
// can do is in it; held requests are not, they need goroutines (the conformance suite of queue/memory replays those).
func fleet(t *testing.T, seed uint64, events int) []byte {
	t.Helper()
	var log bytes.Buffer
	record := replay.NewRecorder(&log)
	now := time.Duration(0)
	q, err := memory.New(policy(4), memory.Options{Clock: func() time.Duration { return now }, Recorder: record})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(seed, 1))
	var open []*memory.Grant
	ask := func() queue.Ask {
		object := random.IntN(6)
		a := queue.Ask{
			Key:   queue.Key{Principal: fmt.Sprint("secret-principal-", random.IntN(9)), Object: fmt.Sprint("secret-object-", object), Client: "secret-client"},
			Class: queue.Class(object % queue.Classes), Protocol: random.IntN(3) > 0, SizeBytes: int64(object+1) * 20 * mib, Validator: fmt.Sprintf(`"secret-tag-%d"`, random.IntN(50)/49),
		}
		switch random.IntN(5) {
		case 0:
			a.Range = queue.OpenFrom(random.Int64N(a.SizeBytes))
		case 1:
			a.Range = queue.Bounded(0, a.SizeBytes-1)
		case 2:
			a.Range = queue.Suffix(1000)
		case 3:
			a.Range = queue.RangeAsk{Kind: queue.RangeMulti}
		}
		if object == 5 || object == 4 && random.IntN(9) == 0 {
			a.Bundle, a.Member = true, random.Uint64N(5)<<60
		}
		a.Peek = random.IntN(12) == 0
		if random.IntN(20) == 0 {
			a.Ticketed, a.Arrival = true, now-time.Duration(random.IntN(60))*time.Second
		}
		return a
	}
	for range events {
		now += time.Duration(random.IntN(300)) * time.Millisecond
		i := random.IntN(len(open) + 1)
		switch n := random.IntN(100); {
		case n < 45:
			if g, _ := q.Admit(ask()); g != nil {
				open = append(open, g)
			}
		case n < 65:
			q.Tick(now)
		case n < 75 && i < len(open):
			open[i].Progress(random.Int64N(5 * mib))
		case n < 96 && i < len(open):
			if g := open[i]; n < 92 {
				g.Finish(0, 50*mib, n < 88)
			} else {
				g.Abandon()
			}
			open = append(open[:i], open[i+1:]...)
		case n == 96:
			q.Leave(ask().Key)
		case n == 97:
			p := policy(2 + random.IntN(4))
			p.Strategy = []queue.Strategy{queue.Ordered, queue.SmallestFirst, queue.FairSojourn, queue.Ordered, queue.Shared}[random.IntN(5)]
			p.SessionsElastic = p.Sessions + random.IntN(3)
			if err := q.Configure(p); err != nil {
				t.Fatal(err)
			}
		case n == 98:
			q.Grace(now+time.Second, now+3*time.Second)
		}
	}
	q.Drain()
	for _, g := range open {
		g.Finish(0, 200*mib, true)
	}
	q.Close()
	if err := record.Err(); err != nil {
		t.Fatal(err)
	}
	return log.Bytes()
}

// TestQ3_HistoriesReplayWithoutDifference: what the log holds is all that the core decides by.
func TestQ3_HistoriesReplayWithoutDifference(t *testing.T) {
	started, yielded := 0, 0
	for seed := range uint64(12) {
		log := fleet(t, seed, 3000)
		report, err := replay.Replay(bytes.NewReader(log))
		if err != nil || report.Differences != 0 || report.Events < 1000 || report.Decisions < 1000 || report.Cores != 1 {
			t.Fatalf("seed %d: %+v, %v", seed, report, err)
		}
		if bytes.Contains(log, []byte("secret")) {
			t.Fatalf("seed %d: the log names a key or a validator", seed)
		}
		for _, n := range report.Starts {
			started += n
		}
		yielded += report.Preemptions
	}
	if started < 500 || yielded < 5 {
		t.Errorf("the histories have %d starts and %d preemptions: too little happens in them", started, yielded)
	}
}

// TestQ3_AChangedLogDiffers is the negative control: each kind of fact, changed by hand, is found.
func TestQ3_AChangedLogDiffers(t *testing.T) {
	log := fleet(t, 3, 3000)
	for name, one := range map[string]struct{ line, from, to string }{
		"a position":      {"= queued release 2 ", "queued release 2 ", "queued release 3 "},
		"a class":         {"= queued release ", "queued release", "queued bulk"},
		"an outcome":      {"= queued ", "= queued", "= ranges-busy"},
		"the policy":      {"policy 0 ordered 4", "ordered 4 ", "ordered 5 "},
		"a state":         {"tick ", " = 1,", " = 2,"},
		"an end's reason": {"| ended release completed ", "completed", "cancelled"},
		"a missing end":   {" | ended release completed 1 ", " | ended release completed 1 ", "\x00"},
	} {
		lines := strings.SplitAfter(string(log), "\n")
		found := false
		for i, line := range lines {
			if strings.Contains(line, one.line) && strings.Contains(line, one.from) {
				lines[i] = strings.Replace(line, one.from, one.to, 1)
				if before, _, cut := strings.Cut(lines[i], "\x00"); cut {
					lines[i] = before + "\n"
				}
				found = true
				break
			}
		}
		report, err := replay.Replay(strings.NewReader(strings.Join(lines, "")))
		if !found || err != nil || report.Differences == 0 || len(report.Described) == 0 || len(report.Described) > replay.MaxDescribed {
			t.Errorf("%s (in the log: %v): %d differences, described %d, %v", name, found, report.Differences, len(report.Described), err)
		}
	}
}

// TestQ3_TheFormatIsTheDocumentedOne pins version 1.
func TestQ3_TheFormatIsTheDocumentedOne(t *testing.T) {
	var log bytes.Buffer
	record := replay.NewRecorder(&log)
	now := time.Duration(0)
	p := policy(1)
	p.Reserve, p.PerPrincipal = 0, 1
	q, err := memory.New(p, memory.Options{Clock: func() time.Duration { return now }, HoldLimit: 1, Recorder: record})
	if err != nil {
		t.Fatal(err)
	}
	a := queue.Ask{Key: queue.Key{Principal: "p", Object: "o", Client: "c"}, Class: queue.Release, Protocol: true, SizeBytes: 20 * mib, Validator: "v"}
	g, _ := q.Admit(a)
	b := a
	b.Key.Client, b.Range, b.Validator = "d", queue.Bounded(0, 9), ""
	now = time.Second
	q.Admit(b)
	g.Progress(5)
	now = 2 * time.Second
	q.Tick(now)
	g.Finish(0, 20*mib, true)
	c := a
	c.Key.Client, c.Protocol, c.Bundle, c.Member, c.Validator = "p", false, true, 0xfeed, ""
	q.Grace(now+time.Second, now+2*time.Second)
	q.Admit(c)
	now = 5 * time.Second
	c.Peek = true
	q.Admit(c)
	q.Close()
	const p0, o0, c0, d0 = "148de9c5a7a44d19", "65c74c15a686187b", "2e7d2c03a9507ae2", "18ac3e7343f01689"
	const v0 = "4c94485e0c21ae6c"
	want := strings.Join([]string{
		"arkvory-decisions 1",
		"policy 0 ordered 1 0 1 8,4,2,1 0 30000000000 60000000000 4 65536 4096 1 0 10485760",
		"ask 0 " + p0 + " " + o0 + " " + c0 + " release 1 20971520 " + v0 + " none - = admitted release 0 0 0 0 - - - s 1",
		"ask 1000000000 " + p0 + " " + o0 + " " + d0 + " release 1 20971520 - bounded:0:9 - = queued release 1 0",
		"progress 2000000000 1 5",
		"tick 2000000000 = 0,1,0,0 0,1,0,0 0 0 1 0",
		"finish 2000000000 1 0 20971520 1 | ended release completed 1 0 -1 2000000000 5",
		"grace 2000000000 4000000000 3000000000",
		"ask 2000000000 " + p0 + " " + o0 + " " + p0 + " release 0 20971520 - none - bundle:feed = queued release 2 0",
		"ask 5000000000 " + p0 + " " + o0 + " " + p0 + " release 0 20971520 - none - peek bundle:feed = ready release 0 3000000000 1000000000 2000000000 - - - - 0",
		"drain 5000000000 | ended release drained 0 4000000000",
	}, "\n") + "\n"
	got := strings.SplitAfter(log.String(), "\n")
	for i, line := range strings.SplitAfter(want, "\n") {
		if i >= len(got) || !strings.HasPrefix(got[i], strings.TrimSuffix(line, "\n")) {
			t.Fatalf("the log is\n%s\nwant lines that begin as\n%s", log.String(), want)
		}
	}
	if replay.Hash("p") != p0 {
		t.Errorf("the hash of p is %s", replay.Hash("p"))
	}
}

// TestQ3_AnOlderLogIsReadAsBefore: what it has no words for did not exist.
func TestQ3_AnOlderLogIsReadAsBefore(t *testing.T) {
	key := strings.TrimSuffix(strings.Repeat("0123456789abcdef ", 3), " ")
	log := "arkvory-decisions 1\npolicy 0 ordered 1 0 1 8,4,2,1 0 30000000000 0 4 65536 4096 1 1 0\ngrace 0 5000000000\n" +
		"ask 1 " + key + " bulk 0 5 - none -9 = admitted bulk 0 0 0 -9 - - - s 1\n" +
		"hold 2 " + key + " bulk 0 5 - none - 0 = admitted bulk 0 0 0 -9 - - - - 2\n"
	report, err := replay.Replay(strings.NewReader(log))
	if err != nil || report.Differences != 0 || report.Events != 4 {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestQ3_ADamagedLogNamesItsLine(t *testing.T) {
	const policyLine = "policy 0 ordered 1 0 1 8,4,2,1 0 30000000000 0 4 65536 4096 1 1 0\n"
	const start = "arkvory-decisions 1\n" + policyLine
	key := strings.TrimSuffix(strings.Repeat("0123456789abcdef ", 3), " ")
	for name, one := range map[string]struct {
		log  string
		line int
		says string
	}{
		"empty":                {"", 1, "ends inside"},
		"another file":         {"hello\n", 1, "no log of decisions"},
		"a later version":      {"arkvory-decisions 2\n", 1, "known version"},
		"cut in the header":    {"arkvory-deci", 1, "ends inside"},
		"cut in a line":        {start + "tick 5 = 0,0,0,0", 3, "ends inside"},
		"no policy":            {"arkvory-decisions 1\ndrain 0\n", 2, "must be policy"},
		"an impossible policy": {"arkvory-decisions 1\n" + strings.Replace(policyLine, " 1 0 1 ", " 0 0 1 ", 1), 2, "Sessions"},
		"unknown strategy":     {"arkvory-decisions 1\npolicy 0 first 1\n", 2, "STRATEGY"},
		"an empty line":        {start + "\n", 3, "call is missing"},
		"an unknown call":      {start + "drain 0\nsing 0\n", 4, `call cannot be "sing"`},
		"no time":              {start + "drain\n", 3, "NOW is missing"},
		"a wrong time":         {start + "drain now\n", 3, "NOW"},
		"too many fields":      {start + "drain 0 1\n", 3, "follows the last"},
		"a wrong key":          {start + "leave 0 x y z\n", 3, "PRINCIPAL"},
		"a wrong hash":         {start + "leave 0 0123456789abcdeg y z\n", 3, "PRINCIPAL"},
		"a wrong class":        {start + "ask 0 " + key + " first\n", 3, "CLASS"},
		"a wrong range":        {start + "ask 0 " + key + " bulk 1 5 - open\n", 3, "RANGE"},
		"a wrong flag":         {start + "ask 0 " + key + " bulk 2\n", 3, "PROTOCOL"},
		"no verdict":           {start + "ask 0 " + key + " bulk 1 5 - none - =\n", 3, "OUTCOME"},
		"unsure admission":     {start + "ask 0 " + key + " bulk 1 5 - none - = queued bulk 1 0 1 0 - - - - 7\n", 3, "RESPONSE"},
		"unknown letters":      {start + "ask 0 " + key + " bulk 1 5 - none - = queued bulk 1 0 1 0 - - - sh 0\n", 3, "FLAGS"},
		"an unknown word":      {start + "ask 0 " + key + " bulk 1 5 - none - glance = queued\n", 3, "= cannot be"},
		"a wrong member":       {start + "ask 0 " + key + " bulk 1 5 - none - bundle:x = queued\n", 3, "BUNDLE"},
		"a wrong gathering":    {start + "grace 0 5 x\n", 3, "GATHER"},
		"an unknown response":  {start + "abandon 0 7\n", 3, "response 7"},
		"an unknown waiter":    {start + "depart 0 7 1\n", 3, "held request 7"},
		"a strange addition":   {start + "drain 0 | moved 1\n", 3, "settled or ended"},
		"a wrong reason":       {start + "drain 0 | ended bulk tired\n", 3, "REASON"},
		"a negative count":     {start + "tick 0 = -1,0,0,0\n", 3, "ACTIVE"},
	} {
		_, err := replay.Replay(strings.NewReader(one.log))
		var at *replay.LineError
		if !errors.As(err, &at) || at.Line != one.line || !strings.Contains(err.Error(), one.says) || !strings.Contains(err.Error(), fmt.Sprintf("line %d:", one.line)) {
			t.Errorf("%s: %v, want line %d to say %q", name, err, one.line, one.says)
		}
	}
	if _, err := replay.Replay(io.MultiReader(strings.NewReader(start), brokenReader{})); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a reader that breaks: %v", err)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

// FuzzParse: whatever the bytes, the parser ends with one event a line, or with the number of the line that it cannot read.
func FuzzParse(f *testing.F) {
	f.Add([]byte("arkvory-decisions 1\npolicy 0 ordered 1 0 1 8,4,2,1 0 30000000000 0 4 65536 4096 1 1 0\ntick 5 = 0,0,0,0 0,0,0,0 0 0 1 1 | ended bulk idle 1 0 -1 5 6\n"))
	f.Add([]byte("arkvory-decisions 1\nhold 0 0123456789abcdef 0123456789abcdef 0123456789abcdef bulk 1 5 - open:7 9 3 = queued bulk 1 0 1 0 5 6 7 hy 0 | settled 3 admitted bulk 0 0 0 0 - - - s 1\n"))
	f.Add([]byte("arkvory-decisions 1\nwindows 7 1000,1000,0,250 9:bulk:1000:3 9:background:0:0\n"))
	f.Add([]byte("arkvory-decisions 1\ngrace 0 5 3\nask 0 0123456789abcdef 0123456789abcdef 0123456789abcdef bulk 0 5 - none - peek bundle:feed = ready bulk 0 0 1 0 - - - - 0\n"))
	f.Fuzz(func(t *testing.T, log []byte) {
		lines := bytes.Count(log, []byte("\n"))
		seen := 0
		err := replay.Parse(bytes.NewReader(log), func(e *replay.Event) error {
			seen++
			if e.Line != seen+1 || int(e.Op) > int(replay.OpWindows) {
				t.Fatalf("event %d is line %d, %v", seen, e.Line, e.Op)
			}
			return nil
		})
		var at *replay.LineError
		if err != nil && (!errors.As(err, &at) || at.Line < 1 || at.Line > lines+1) {
			t.Fatalf("%d lines: %v", lines, err)
		}
		if err == nil && seen != lines-1 {
			t.Fatalf("%d events of %d lines", seen, lines)
		}
	})
}
