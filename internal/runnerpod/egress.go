package runnerpod

import (
	"github.com/deckhand-dev/deckhand/internal/egress"
)

// EgressClass returns what a pod may reach.
func EgressClass(in Input) egress.Class {
	var urls []string
	if p := newBuilder(in).defaults.Proxy; p != nil {
		urls = append(urls, p.HTTP, p.HTTPS)
	}
	return egress.Of(in.Revision.Snapshot, in.Run.Namespace, urls...)
}
