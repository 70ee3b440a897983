//go:build gate

package house_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	validatorClients = 30
	validatorBytes   = 16 * mib
	validatorRate    = mib // bytes/s of each
)

// TestGateUpstreamValidator is the part of acceptance 5.2 that chaos meets by chance only: an origin that gives another object, of the same size and under another
// entity tag, when the rest of a broken download is asked for.
//
//   - OneIsRight: of the two origins that are left one is right. Every download ends whole: an answer that does not fit is no reason to give up while another
//     origin can be asked.
//   - NoneIsRight: both are wrong. Every download that broke is cut, the others end whole; no client gets a byte that is not the object's.
func TestGateUpstreamValidator(t *testing.T) {
	raiseFiles(t)
	binary := buildSidecar(t)
	t.Run("OneIsRight", func(t *testing.T) { gateValidator(t, binary, 1) })
	t.Run("NoneIsRight", func(t *testing.T) { gateValidator(t, binary, 2) })
}

func gateValidator(t *testing.T, binary string, wrong int) {
	s := newStore(t, 0, 0)
	s.add(t, "object", validatorBytes, 1)
	s.add(t, "other", validatorBytes, 2)
	s.otherObject(t, "other")
	object, err := os.ReadFile(filepath.Join(s.dir, "object"))
	if err != nil {
		t.Fatal(err)
	}
	addresses, names := originAddresses(t, 3, false), startNames(t)
	var origins []*webOrigin
	for i, address := range addresses {
		o := newOrigin(t, s, string(rune('a'+i)), address, 5*time.Minute)
		o.start()
		origins = append(origins, o)
	}
	names.set(poolName, addresses...)
	car := startSidecar(t, binary, poolOrigin(portOf(addresses[0])), false, poolVariables(names, map[string]string{
		"ARKVORY_MAX_DOWNLOAD_SESSIONS": strconv.Itoa(validatorClients), "ARKVORY_DOWNLOAD_RESERVE": "0", "ARKVORY_DOWNLOAD_SESSION_MIN_BYTES": strconv.FormatInt(mib, 10),
		"ARKVORY_DOWNLOAD_BYTES_PER_SECOND_PER_PRINCIPAL": strconv.FormatInt(validatorRate, 10), "ARKVORY_UPSTREAM_RESUME": "true", "ARKVORY_UPSTREAM_SLOW_START_SECONDS": "0"}))
	within(t, 20*time.Second, "all three are connected", func() bool {
		connected := establishedTo(t)
		return connected[addresses[0]] > 0 && connected[addresses[1]] > 0 && connected[addresses[2]] > 0
	})
	var all sync.WaitGroup
	var running, whole, cut atomic.Int64
	for n := range validatorClients {
		all.Go(func() {
			c, err := dialRaw(car.listen, n, 64<<10)
			if err == nil {
				defer c.cut()
				err = c.send("/object", "")
			}
			if err == nil {
				err = c.head(20 * time.Second)
			}
			running.Add(1)
			if err != nil || c.code != 200 {
				t.Errorf("download %d: status %d, %v", n, c.code, err)
				return
			}
			got, err := io.ReadAll(io.LimitReader(c, c.size-c.early))
			switch rest := object[c.early:]; {
			case !bytes.HasPrefix(rest, got):
				t.Errorf("download %d got bytes that are not the object's", n)
			case len(got) == len(rest):
				whole.Add(1)
			default:
				cut.Add(1)
				if wrong == 1 {
					t.Errorf("download %d was cut at %d bytes: %v", n, len(got), err)
				}
			}
		})
	}
	within(t, 30*time.Second, "all downloads run", func() bool { return running.Load() == validatorClients })
	for _, o := range origins[1 : 1+wrong] {
		o.link(filepath.Join(s.dir, "other"), "object")
	}
	on := establishedTo(t)
	origins[0].kill()
	all.Wait()
	page := car.pool()
	breaks, opened, changed, ended := page.breaks(), page.opened(t), page.of(t, seriesChanged), page.of(t, seriesResumeEnds)
	t.Logf("\n| origins right of those left | connections to the killed one, to the others | breaks | resumes | cut since the object changed | given up | whole | cut |\n|---|---|---|---|---|---|---|---|\n"+
		"| %d of 2 | %d, %s | %d | %d | %d | %d | %d | %d |\n", 2-wrong, on[addresses[0]], fmt.Sprint(on[addresses[1]], on[addresses[2]]), breaks, opened, changed, ended, whole.Load(), cut.Load())
	if breaks == 0 {
		t.Error("nothing broke: this shows nothing")
	}
	if wrong == 1 && (whole.Load() != validatorClients || opened != breaks || changed+ended != 0) ||
		wrong == 2 && (int(cut.Load()) != breaks || changed+ended != breaks || opened != 0) {
		t.Errorf("%d breaks, %d resumes, %d changed, %d given up; %d whole, %d cut", breaks, opened, changed, ended, whole.Load(), cut.Load())
	}
}
