package web

import (
	"net/netip"
	"testing"
)

func TestTargetsWithAndWithoutHosts(t *testing.T) {
	for name, tc := range map[string]struct {
		hosts []string
		want  map[string]bool
	}{
		"without": {nil, map[string]bool{"1.1.1.1": true, "10.0.0.1": false, "127.0.0.1": false, "169.254.169.254": false}},
		"with":    {[]string{"api.internal"}, map[string]bool{"1.1.1.1": true, "10.0.0.1": true, "127.0.0.1": false, "169.254.169.254": false, "fd00:ec2::254": false}},
	} {
		r, err := Options{Hosts: tc.hosts}.readTargets()
		if err != nil {
			t.Fatal(err)
		}
		for a, want := range tc.want {
			if got := r.allow(netip.MustParseAddr(a)); got != want {
				t.Errorf("%s hosts %s is allowed: %v", name, a, got)
			}
		}
	}
}
