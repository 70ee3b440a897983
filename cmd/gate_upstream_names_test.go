//go:build gate

package house_test

import (
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/miekg/dns"
)

// poolName is the origin's name in these gates; no other server knows it.
const poolName = "store.gate.test"

// zone is what the name server says of one name.
type zone struct {
	addresses []netip.Addr
	code      int  // dns.RcodeSuccess, NameError, ServerFailure
	silent    bool // no answer at all
}

// nameServer is a DNS server on loopback, UDP and TCP, whose answers change while it runs. Names it does not hold do not exist.
type nameServer struct {
	address string

	mu    sync.Mutex
	zones map[string]zone
	asked map[string]int // questions by name and type, "store.gate.test AAAA"
}

// timeToLive of all answers, in seconds: the shortest that is not "never".
const timeToLive = 1

// startNames runs a name server until the test ends. Both transports are on one port.
func startNames(t *testing.T) *nameServer {
	t.Helper()
	s := &nameServer{zones: map[string]zone{}, asked: map[string]int{}}
	var packets net.PacketConn
	var stream net.Listener
	for range 20 { // the port of the first may be taken for the second
		var err error
		if packets, err = net.ListenPacket("udp4", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		if stream, err = net.Listen("tcp4", packets.LocalAddr().String()); err == nil {
			break
		}
		_ = packets.Close()
	}
	if stream == nil {
		t.Fatal("no port that is free for UDP and TCP")
	}
	s.address = packets.LocalAddr().String()
	var running sync.WaitGroup
	for _, server := range []*dns.Server{{PacketConn: packets, Handler: s}, {Listener: stream, Handler: s}} {
		up := make(chan struct{})
		server.NotifyStartedFunc = func() { close(up) }
		running.Go(func() {
			if err := server.ActivateAndServe(); err != nil {
				t.Errorf("name server: %v", err)
			}
		})
		<-up
		defer t.Cleanup(func() { _ = server.Shutdown() })
	}
	t.Cleanup(running.Wait) // behind the two
	return s
}

// ServeDNS answers one question.
func (s *nameServer) ServeDNS(w dns.ResponseWriter, question *dns.Msg) {
	answer := new(dns.Msg).SetReply(question)
	answer.Authoritative = true
	q := question.Question[0]
	name := strings.ToLower(strings.TrimSuffix(q.Name, "."))
	s.mu.Lock()
	s.asked[name+" "+dns.TypeToString[q.Qtype]]++
	z, known := s.zones[name]
	s.mu.Unlock()
	switch {
	case z.silent:
		return
	case !known:
		answer.Rcode = dns.RcodeNameError
	case z.code != dns.RcodeSuccess:
		answer.Rcode = z.code
	}
	head := dns.RR_Header{Name: q.Name, Rrtype: q.Qtype, Class: dns.ClassINET, Ttl: timeToLive}
	for _, ip := range z.addresses {
		switch {
		case answer.Rcode != dns.RcodeSuccess:
		case q.Qtype == dns.TypeA && ip.Is4():
			answer.Answer = append(answer.Answer, &dns.A{Hdr: head, A: ip.AsSlice()})
		case q.Qtype == dns.TypeAAAA && ip.Is6():
			answer.Answer = append(answer.Answer, &dns.AAAA{Hdr: head, AAAA: ip.AsSlice()})
		}
	}
	size := dns.MaxMsgSize
	if _, datagram := w.RemoteAddr().(*net.UDPAddr); datagram {
		if size = dns.MinMsgSize; question.IsEdns0() != nil {
			size = int(question.IsEdns0().UDPSize())
		}
	}
	answer.Truncate(size)
	_ = w.WriteMsg(answer) // an asker that left
}

// set gives a name these addresses, with or without a port, from the next question on; none: the name exists without any.
func (s *nameServer) set(name string, addresses ...string) {
	z := zone{}
	for _, text := range addresses {
		if withPort, err := netip.ParseAddrPort(text); err == nil {
			text = withPort.Addr().String()
		}
		z.addresses = append(z.addresses, netip.MustParseAddr(text))
	}
	s.put(name, z)
}

// fail makes a name answer with a code.
func (s *nameServer) fail(name string, code int) { s.put(name, zone{code: code}) }

// silence leaves questions about a name unanswered.
func (s *nameServer) silence(name string) { s.put(name, zone{silent: true}) }

func (s *nameServer) put(name string, z zone) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.zones[name] = z
}

// questions returns how often each name and type was asked for.
func (s *nameServer) questions() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.asked)
}

// sortedTexts returns addresses in a fixed order, as text.
func sortedTexts(addresses []netip.Addr) []string {
	out := make([]string, 0, len(addresses))
	for _, a := range addresses {
		out = append(out, a.Unmap().String())
	}
	slices.Sort(out)
	return out
}
