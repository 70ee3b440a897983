package config

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

func FuzzPrincipalSources(f *testing.F) {
	for _, seed := range []string{"signature,authorization,address", "header:X-User,cookie:sid", " client-cert ", "header:", "a:b:c", ",", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := parsePrincipalSources(text)
		if err != nil {
			return
		}
		again, err := parsePrincipalSources(list.String())
		if err != nil || !slices.Equal(list, again) || len(list) == 0 {
			t.Fatalf("%q reads as %v, its text as %v (%v)", text, list, again, err)
		}
		for _, one := range list {
			if named := one.Kind == KindHeader || one.Kind == KindCookie; named != isToken(one.Name) {
				t.Fatalf("%q gives the entry %+v", text, one)
			}
		}
	})
}

func FuzzWeights(f *testing.F) {
	for _, seed := range []string{"interactive=8,release=4,bulk=2,background=1", "bulk=1000", "bulk=0", "bulk==1", "=", "bulk=1,bulk=1", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		weights, err := parseWeights(text)
		if err != nil {
			return
		}
		for _, one := range []int{weights.Interactive, weights.Release, weights.Bulk, weights.Background} {
			if one < 1 || one > 1000 {
				t.Fatalf("%q gives %+v", text, weights)
			}
		}
		if again, err := parseWeights(weights.String()); err != nil || again != weights {
			t.Fatalf("%q reads as %v, its text as %v (%v)", text, weights, again, err)
		}
	})
}

func FuzzNetworks(f *testing.F) {
	for _, seed := range []string{"10.0.0.1/8,::1", "::ffff:10.0.0.0/104", "::ffff:0:0/95", "fe80::1%e", "1.2.3.4/032", "::/0", ","} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		canonical, err := checkNetworks(text)
		if err != nil {
			return
		}
		for _, entry := range strings.Split(canonical, ",") {
			network, err := netip.ParsePrefix(entry)
			if err != nil || network != network.Masked() || network.Addr().Is4In6() {
				t.Fatalf("%q gives the network %q (%v)", text, entry, err)
			}
		}
		if again, err := checkNetworks(canonical); err != nil || again != canonical {
			t.Fatalf("%q becomes %q and then %q (%v)", text, canonical, again, err)
		}
	})
}

// FuzzAddresses compares with the standard library: what is accepted must be what a listener and a URL take.
func FuzzAddresses(f *testing.F) {
	for _, seed := range []string{":8080", "127.0.0.1:0", "[::1]:65535", "[::1%lo]:80", "host", "a.b.:1", "[]:1", "::1", "1:2:3", "[::1]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := checkListen(text); err == nil {
			if _, _, err := net.SplitHostPort(text); err != nil {
				t.Fatalf("checkListen accepts %q: %v", text, err)
			}
			if !collide(text, text) && !strings.HasSuffix(strings.TrimRight(text, "0"), ":") {
				t.Fatalf("%q does not collide with itself", text)
			}
		}
		if _, err := checkHostHeader(text); err == nil {
			if parsed, err := url.Parse("http://" + text); err != nil || parsed.Host != text {
				t.Fatalf("checkHostHeader accepts %q, a URL reads %v (%v)", text, parsed, err)
			}
		}
		if _, err := checkVia(text); err == nil && strings.ContainsAny(text, " ,;\r\n\"()") {
			t.Fatalf("checkVia accepts %q", text)
		}
	})
}

func FuzzOrigin(f *testing.F) {
	for _, seed := range []string{"http://origin", "https://[::1]:443/", "http://u:p@h", "http://h?#", "HTTP://h", "http://%41", "http:///", "//h"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		canonical, err := checkOrigin(text)
		if err != nil {
			return
		}
		parsed, err := url.Parse(canonical)
		if err != nil || parsed.Hostname() == "" || (url.URL{Scheme: parsed.Scheme, Host: parsed.Host}) != *parsed {
			t.Fatalf("%q becomes %q, which is %+v (%v)", text, canonical, parsed, err)
		}
	})
}

// FuzzLoad gives any value to any variable: Load returns a configuration with its invariants or a fault, never both.
func FuzzLoad(f *testing.F) {
	var open []string // Variables that name files are left out: a fuzzer must not open what it makes up.
	for _, one := range definitions {
		if !strings.HasSuffix(one.name, "_FILE") && !strings.HasSuffix(one.name, "_DIR") {
			f.Add(uint8(len(open)), one.example, uint8(len(open)+1), "1")
			open = append(open, one.name)
		}
	}
	f.Fuzz(func(t *testing.T, i uint8, left string, j uint8, right string) {
		c, _, err := Load([]string{open[int(i)%len(open)] + "=" + left, open[int(j)%len(open)] + "=" + right})
		if err != nil {
			if c.Listen != "" || strings.Contains(err.Error(), "does not fit its setting") {
				t.Fatalf("a configuration with a fault, or a check that is too lax: %v", err)
			}
			return
		}
		sound := c.MaxUploadsPerPrincipal >= 1 && c.MaxUploadsPerPrincipal <= c.MaxUploads &&
			c.MaxDownloadsPerPrincipal >= 1 && c.MaxDownloadsPerPrincipal <= c.MaxDownloads &&
			c.TransferQueuePerPrincipal <= c.TransferQueueLimit && c.DownloadQueuePerPrincipal <= c.DownloadQueueLimit &&
			c.DownloadReserve >= 0 && c.DownloadReserve < c.MaxDownloadSessions && c.UploadIdleTimeout <= c.UploadDeadline &&
			c.DownloadAdmissionMinBytes <= c.DownloadSessionMinBytes && c.UpstreamMaxIdle <= c.UpstreamMaxConnections &&
			c.DownloadHold <= 25*time.Second && len(c.PrincipalFrom) > 0 &&
			c.DownloadDripLimit >= 0 && c.DownloadDripLimit <= 65536 && c.DownloadDripBytesPerSecond >= 1 && c.DownloadDripBytesPerSecond <= 65536 &&
			c.RestartGrace >= 0 && c.RestartGrace <= 600*time.Second && (c.TicketKey == "" || keySpelling.MatchString(c.TicketKey.Reveal()))
		if !sound {
			t.Fatalf("the invariants do not hold: %+v", c)
		}
	})
}
