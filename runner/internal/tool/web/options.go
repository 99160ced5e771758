package web

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/deckhand-dev/deckhand/runner/internal/address"
)

// Options are what HTTPRequest and Browse are made of.
type Options struct {
	// Hosts are the only ones that are reached, exact or as *.suffix; those may be
	// within the cluster. Empty: every host with a public address.
	Hosts []string
	// RunUID is the first half of the Idempotency-Key of requests that change
	// something; empty: none is sent.
	RunUID string
	// Allow, when set, judges the addresses of connections in place of the rules
	// of this package. It is for programs that serve what they ask for, as tests
	// do.
	Allow func(netip.Addr) bool

	resolver *net.Resolver
	dial     func(ctx context.Context, network, address string) (net.Conn, error)
}

// reach are the rules of one tool.
type reach struct {
	hosts hosts
	allow func(netip.Addr) bool
}

func (o Options) reach() (reach, error) {
	list, err := readHosts(o.Hosts)
	if err != nil {
		return reach{}, fmt.Errorf("reading the hosts: %w", err)
	}
	r := reach{hosts: list, allow: o.Allow}
	if r.allow == nil {
		farthest := address.Public
		if len(list) > 0 {
			farthest = address.Within
		}
		r.allow = func(a netip.Addr) bool { return address.Of(a) >= farthest }
	}
	return r, nil
}
