package web

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/deckhand-dev/deckhand/runner/internal/address"
)

// Options configure HTTPRequest and Browse.
type Options struct {
	// Hosts are the allowed hosts, exact or as *.suffix, also within the cluster.
	// Empty: every host with a public address.
	Hosts []string
	// RunUID is the first part of the Idempotency-Key of requests other than GET and
	// HEAD. Empty: none is sent.
	RunUID string
	// Allow, if set, replaces the check of addresses. It is for tests, whose servers
	// are on loopback.
	Allow func(netip.Addr) bool

	resolver *net.Resolver
	dial     func(ctx context.Context, network, address string) (net.Conn, error)
}

// targets are the hosts and addresses that one tool may connect to.
type targets struct {
	hosts hosts
	allow func(netip.Addr) bool
}

func (o Options) readTargets() (targets, error) {
	list, err := readHosts(o.Hosts)
	if err != nil {
		return targets{}, fmt.Errorf("reading the hosts: %w", err)
	}
	r := targets{hosts: list, allow: o.Allow}
	if r.allow == nil {
		farthest := address.Public
		if len(list) > 0 {
			farthest = address.Within
		}
		r.allow = func(a netip.Addr) bool { return address.Of(a) >= farthest }
	}
	return r, nil
}
