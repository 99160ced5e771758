package web

import (
	"net/netip"
	"testing"
)

func TestZoneOf(t *testing.T) {
	zones := map[zone][]string{
		public: {
			"1.1.1.1", "93.184.216.34", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1", "192.167.1.1", "198.17.1.1", "198.20.0.1",
			"2606:4700:4700::1111", "2001:4860:4860::8888", "::ffff:1.1.1.1", "64:ff9b::1.1.1.1",
		},
		within: {
			"10.0.0.1", "10.96.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "100.127.255.255", "198.18.0.1",
			"fc00::1", "fd12:3456::1", "::ffff:10.0.0.1", "64:ff9b::10.0.0.1",
		},
		never: {
			"127.0.0.1", "127.1.2.3", "0.0.0.0", "0.1.2.3", "169.254.169.254", "169.254.170.2", "169.254.0.1",
			"192.0.0.192", "192.0.2.1", "198.51.100.1", "203.0.113.1", "192.88.99.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
			"100.100.100.200", "168.63.129.16",
			"::", "::1", "fe80::1", "fe80::1%eth0", "febf::1", "fec0::1", "ff02::1", "2001:db8::1", "3fff::1", "100::1", "5f00::1", "4000::1",
			"fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:42::42", "fd00:c1::a9fe:a9fe",
			"::ffff:127.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "::169.254.169.254", "::ffff:0:127.0.0.1",
			"64:ff9b::127.0.0.1", "64:ff9b::169.254.169.254", "64:ff9b:1::169.254.169.254",
			"2002:7f00:1::1", "2002:a9fe:a9fe::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001::1",
		},
	}
	for want, addrs := range zones {
		for _, a := range addrs {
			if got := zoneOf(netip.MustParseAddr(a)); got != want {
				t.Errorf("zoneOf(%s) = %d, want %d", a, got, want)
			}
		}
	}
	if got := zoneOf(netip.Addr{}); got != never {
		t.Errorf("zoneOf(no address) = %d, want never", got)
	}
}

func TestReachWithAndWithoutHosts(t *testing.T) {
	for name, tc := range map[string]struct {
		hosts []string
		want  map[string]bool
	}{
		"without": {nil, map[string]bool{"1.1.1.1": true, "10.0.0.1": false, "127.0.0.1": false, "169.254.169.254": false}},
		"with":    {[]string{"api.internal"}, map[string]bool{"1.1.1.1": true, "10.0.0.1": true, "127.0.0.1": false, "169.254.169.254": false, "fd00:ec2::254": false}},
	} {
		r, err := Options{Hosts: tc.hosts}.reach()
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
