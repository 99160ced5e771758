package address

import (
	"net/netip"
	"slices"
)

// A Zone is how far away an address is.
type Zone int

const (
	// Never is what no tool reaches: this machine, its link, metadata services,
	// and addresses without a host.
	Never Zone = iota
	// Within is what a list of hosts opens: the cluster and its surroundings.
	Within
	// Public is everything else.
	Public
)

// The registries behind these lists are IANA's of special-purpose addresses, and
// what clouds say of their metadata services.
var (
	neverNets = prefixes(
		"0.0.0.0/8",          // this network
		"127.0.0.0/8",        // loopback
		"169.254.0.0/16",     // link-local, with most metadata services
		"192.0.0.0/24",       // protocol assignments
		"192.0.2.0/24",       // documentation
		"192.88.99.0/24",     // relays of 6to4
		"198.51.100.0/24",    // documentation
		"203.0.113.0/24",     // documentation
		"224.0.0.0/4",        // multicast
		"255.255.255.255/32", // broadcast

		"100.100.100.200/32",     // metadata: Alibaba
		"168.63.129.16/32",       // the host: Azure
		"fd00:ec2::/32",          // metadata: AWS
		"fd20:ce::/32",           // metadata: Google
		"fd00:42::42/128",        // metadata: Scaleway
		"fd00:c1::a9fe:a9fe/128", // metadata: Oracle

		"2001::/23",     // protocol assignments, with Teredo
		"2001:db8::/32", // documentation
		"2002::/16",     // 6to4
		"3fff::/20",     // documentation
	)
	withinNets = prefixes(
		"10.0.0.0/8",
		"100.64.0.0/10", // shared, as of providers and some clusters
		"172.16.0.0/12",
		"192.168.0.0/16",
		"198.18.0.0/15", // benchmarks, and some clusters
		"240.0.0.0/4",   // reserved, and pods of some clusters
		"fc00::/7",      // unique local
	)
	// publicNets is all of IPv6 that is in use; the rest leads nowhere.
	publicNets = prefixes("2000::/3")
	// embedding are addresses whose last four bytes are one of IPv4 that the
	// network sends them on to.
	embedding = prefixes(
		"64:ff9b::/96",    // NAT64
		"::ffff:0:0:0/96", // SIIT
	)
)

func prefixes(all ...string) []netip.Prefix {
	parsed := make([]netip.Prefix, len(all))
	for i, one := range all {
		parsed[i] = netip.MustParsePrefix(one)
	}
	return parsed
}

// Of judges an address.
func Of(a netip.Addr) Zone {
	a = a.Unmap().WithZone("")
	if contains(embedding, a) {
		full := a.As16()
		a = netip.AddrFrom4([4]byte(full[12:]))
	}
	switch {
	case !a.IsValid(), contains(neverNets, a):
		return Never
	case contains(withinNets, a):
		return Within
	case a.Is4(), contains(publicNets, a):
		return Public
	}
	return Never
}

func contains(nets []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(nets, func(p netip.Prefix) bool { return p.Contains(a) })
}
