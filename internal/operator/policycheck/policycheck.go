// Package policycheck checks that the admission policies for runners are installed. Without them a runner could write
// to other Runs, a user who may patch pods could send signals to a runner, a Decision could carry the name of another
// user, and the work of a Run could change after a user approved its calls. A user could create a Run that looks like
// the child of another, or in another user's name, or that reads the conversation of another, change which Runs may use
// the files of a Run, or create an event that looks like the operator's. No runner is started while one is missing.
package policycheck

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// interval is how often the Checker gets the policies, firstInterval until it could get them once.
const (
	interval      = 15 * time.Second
	firstInterval = time.Second
)

// A Checker gets the admission policies at an interval and knows which are missing.
type Checker struct {
	reader  client.Reader
	names   []string
	exclude []string
	log     logr.Logger
	missing atomic.Pointer[string] // nil: not checked yet
}

// New returns a Checker of the policies of a release, whose names begin with prefix. They do not apply in the
// namespaces exclude.
func New(reader client.Reader, prefix string, exclude []string, log logr.Logger) *Checker {
	return &Checker{reader: reader, exclude: exclude, names: []string{prefix + "-runner-status", prefix + "-runner-pods", prefix + "-runner-pod-status", prefix + "-decisions", prefix + "-child-runs", prefix + "-run-spec", prefix + "-run-user", prefix + "-run-session", prefix + "-run-claims", prefix + "-events"}, log: log}
}

// Missing returns, for a message, the policies that a namespace lacks. It is empty if none is missing, or if the
// operator may not get them. Before the first check they are not known.
func (c *Checker) Missing(namespace string) (policies string, known bool) {
	if slices.Contains(c.exclude, namespace) {
		return fmt.Sprintf("admission policies in Namespace %s, which policies.excludeNamespaces of the chart names", namespace), true
	}
	missing := c.missing.Load()
	if missing == nil {
		return "", false
	}
	return *missing, true
}

// Start checks the policies at an interval until the context ends.
func (c *Checker) Start(ctx context.Context) error {
	for {
		c.Check(ctx)
		pause := interval
		if c.missing.Load() == nil {
			pause = firstInterval
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// NeedLeaderElection returns false: a standby operator checks the policies too.
func (*Checker) NeedLeaderElection() bool { return false }

// Check gets the policies once.
func (c *Checker) Check(ctx context.Context) {
	var lacks []string
	for _, name := range c.names {
		key := client.ObjectKey{Name: name}
		for _, object := range []client.Object{
			&admissionregistrationv1.ValidatingAdmissionPolicy{},
			&admissionregistrationv1.ValidatingAdmissionPolicyBinding{},
		} {
			switch err := c.reader.Get(ctx, key, object); {
			case apierrors.IsNotFound(err):
				lacks = append(lacks, fmt.Sprintf("%s %s", reflect.TypeOf(object).Elem().Name(), name))
			case apierrors.IsForbidden(err):
				c.log.V(1).Info("Not allowed to get an admission policy; assuming that it is installed", "policy", name)
			case err != nil:
				return // unknown: keep the last result
			}
		}
	}
	missing := strings.Join(lacks, ", ")
	if was := c.missing.Swap(&missing); missing != "" && (was == nil || *was != missing) {
		c.log.Info("Starting no runners: admission policies are missing", "missing", missing)
	}
}
