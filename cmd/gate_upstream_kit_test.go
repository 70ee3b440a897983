//go:build gate

package house_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// TestGateUpstreamKit shows that what the gates of the pool rest on does what they believe: the name server, the origins and the address that answers nothing.
func TestGateUpstreamKit(t *testing.T) {
	t.Run("Names", kitNames)
	t.Run("Origins", kitOrigins)
	t.Run("BlackHole", func(t *testing.T) {
		address := originAddresses(t, 1, false)[0]
		open := blackHole(t, address)
		if connection, err := net.DialTimeout("tcp4", address, 700*time.Millisecond); err == nil || !os.IsTimeout(err) {
			t.Errorf("connecting to the black hole: %v, %v", connection, err)
		}
		open()
		if _, err := net.DialTimeout("tcp4", address, 700*time.Millisecond); err == nil || os.IsTimeout(err) {
			t.Errorf("connecting to where nobody listens: %v", err)
		}
	})
}

func kitNames(t *testing.T) {
	names := startNames(t)
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, names.address)
	}}
	look := func() ([]string, *net.DNSError) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		all, err := resolver.LookupNetIP(ctx, "ip", poolName)
		var failed *net.DNSError
		errors.As(err, &failed)
		return sortedTexts(all), failed
	}
	names.set(poolName, "127.0.0.2:80", "[::1]:80", "127.0.0.3")
	if got, err := look(); err != nil || !slices.Equal(got, []string{"127.0.0.2", "127.0.0.3", "::1"}) {
		t.Errorf("three addresses: %v, %v", got, err)
	}
	names.set(poolName, "127.0.0.4")
	if got, err := look(); err != nil || !slices.Equal(got, []string{"127.0.0.4"}) {
		t.Errorf("another one: %v, %v", got, err)
	}
	many := []string{}
	for i := range 64 { // beyond a datagram: the resolver comes again by TCP or asks for longer ones
		many = append(many, (&net.IPAddr{IP: net.IPv4(127, 1, 1, byte(i))}).String())
	}
	names.set(poolName, many...)
	if got, err := look(); err != nil || len(got) != len(many) {
		t.Errorf("64 addresses: %v, %v", got, err)
	}
	names.fail(poolName, dns.RcodeNameError)
	if got, err := look(); err == nil || !err.IsNotFound {
		t.Errorf("a name that does not exist: %v, %v", got, err)
	}
	names.fail(poolName, dns.RcodeServerFailure)
	if got, err := look(); err == nil || err.IsNotFound || !err.IsTemporary {
		t.Errorf("a server that fails: %v, %v", got, err)
	}
	names.silence(poolName)
	if got, err := look(); err == nil || !err.IsTimeout {
		t.Errorf("no answer: %v, %v", got, err)
	}
	if asked := names.questions(); asked[poolName+" A"] < 6 || asked[poolName+" AAAA"] < 6 {
		t.Errorf("questions: %v", asked)
	}
}

func kitOrigins(t *testing.T) {
	s := newStore(t, 2, mib)
	s.otherObject(t, "file1")
	addresses := originAddresses(t, 3, true)
	tags := map[string]bool{}
	var all []*webOrigin
	ask := func(o *webOrigin) (*http.Response, error) {
		client := http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
		response, err := client.Get("http://" + o.address + "/file0")
		if err == nil {
			_ = response.Body.Close()
		}
		return response, err
	}
	for i, address := range addresses {
		o := newOrigin(t, s, string(rune('a'+i)), address, time.Minute)
		o.start()
		all = append(all, o)
		response, err := ask(o)
		if err != nil || response.StatusCode != 200 || response.Header.Get("Gate-Origin") != o.name {
			t.Fatalf("origin %s: %v, %v", o.name, response, err)
		}
		tags[response.Header.Get("ETag")] = true
	}
	if len(tags) != 1 {
		t.Errorf("three origins, entity tags %v", tags)
	}
	all[0].link(s.dir+"/file1", "file0")
	if response, err := ask(all[0]); err != nil || response.ContentLength != mib {
		t.Errorf("another object of the same size: %v, %v", response, err)
	} else if tags[response.Header.Get("ETag")] = true; len(tags) != 2 {
		t.Errorf("another object, entity tags %v", tags)
	}
	all[0].link(s.dir+"/file0", "file0")
	if response, err := ask(all[0]); err != nil || !tags[response.Header.Get("ETag")] || len(tags) != 2 {
		t.Errorf("the object again: %v, %v", response, err)
	}
	all[1].halt()
	if _, err := ask(all[1]); err == nil || !os.IsTimeout(err) {
		t.Errorf("a stopped origin: %v", err)
	}
	all[1].goOn()
	if _, err := ask(all[1]); err != nil {
		t.Errorf("an origin that goes on: %v", err)
	}
	all[2].kill()
	if _, err := ask(all[2]); err == nil || os.IsTimeout(err) {
		t.Errorf("a killed origin: %v", err)
	}
	all[2].start()
	connection, err := net.Dial("tcp", all[2].address)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	within(t, 5*time.Second, "the kernel shows one connection", func() bool { return establishedTo(t)[all[2].address] == 1 })
	before, _ := all[2].accepts()
	if after, _ := all[2].accepts(); after != before+1 { // the question before
		t.Errorf("accepted %d connections, then %d", before, after)
	}
}
