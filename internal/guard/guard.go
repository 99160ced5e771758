// Package guard watches over the admission policies that make runners safe.
// Without them a runner could write to other Runs, anybody with the right to
// patch pods could tell a runner what to do, a decision could be in another's name,
// anybody could make a Run that passes for another's child, and the input of a Run
// could change after a user approved its calls; so no runner is started while they
// are missing.
package guard

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// interval is how often the policies are looked for.
const interval = 15 * time.Second

// A Guard knows whether the admission policies are there.
type Guard struct {
	reader  client.Reader
	names   []string
	log     logr.Logger
	missing atomic.Pointer[string]
}

// New guards the policies of a release; prefix is what their names begin with.
func New(reader client.Reader, prefix string, log logr.Logger) *Guard {
	g := &Guard{reader: reader, names: []string{prefix + "-runner-status", prefix + "-runner-pods", prefix + "-decisions", prefix + "-child-runs", prefix + "-run-input"}, log: log}
	unknown := "word of its admission policies"
	g.missing.Store(&unknown)
	return g
}

// Missing says, for people, what the cluster lacks; empty: nothing, or nothing
// that the operator may know of.
func (g *Guard) Missing() string { return *g.missing.Load() }

// Start looks for the policies until the context ends.
func (g *Guard) Start(ctx context.Context) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		g.Look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// NeedLeaderElection is false: a standby should know as well.
func (*Guard) NeedLeaderElection() bool { return false }

// Look looks for the policies once.
func (g *Guard) Look(ctx context.Context) {
	var lacks []string
	for _, name := range g.names {
		key := client.ObjectKey{Name: name}
		for _, object := range []client.Object{
			&admissionregistrationv1.ValidatingAdmissionPolicy{},
			&admissionregistrationv1.ValidatingAdmissionPolicyBinding{},
		} {
			switch err := g.reader.Get(ctx, key, object); {
			case apierrors.IsNotFound(err):
				lacks = append(lacks, fmt.Sprintf("%s %s", reflect.TypeOf(object).Elem().Name(), name))
			case apierrors.IsForbidden(err):
				g.log.V(1).Info("May not look for an admission policy; taking it to be there", "policy", name)
			case err != nil:
				return // unknown: what was known stands
			}
		}
	}
	missing := strings.Join(lacks, ", ")
	if was := g.missing.Swap(&missing); *was != missing && missing != "" {
		g.log.Info("Starting no runners: admission policies are missing", "missing", missing)
	}
}
