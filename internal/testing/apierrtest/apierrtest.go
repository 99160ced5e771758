// Package apierrtest has an API server in memory whose writes fail, and the errors of each
// class, for tests of conditions.
package apierrtest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// A Failure is a class of failures.
type Failure struct {
	// Err returns the error of the nth request: its numbers, ids and addresses differ.
	Err func(verb, kind, name string, n int) error
	// Want is a text that the message of a condition must contain.
	Want string
	// Transient reports that the API server did not refuse the request: it is retried immediately.
	Transient bool
}

// Failures returns all classes of failures, by name.
func Failures() map[string]Failure {
	return map[string]Failure{
		"the operator lacks the right": {
			Err: func(verb, kind, name string, _ int) error {
				return forbidden(kind, name, `User "system:serviceaccount:deckhand:deckhand" cannot %s resource "%s" in API group "" in the namespace "team-a"`, verb, resource(kind).Resource)
			},
			Want: `cannot`,
		},
		"a webhook denies it": {
			Err: func(_, _, _ string, n int) error {
				return status(http.StatusBadRequest, "", `admission webhook "guard.example.com" denied the request: not here (request id: %08d-1111-2222-3333-444444444444)`, n)
			},
			Want: `admission webhook "guard.example.com" denied the request: not here`,
		},
		"a policy denies it": {
			Err: func(_, kind, name string, _ int) error {
				return forbidden(kind, name, `ValidatingAdmissionPolicy 'p' with binding 'p' denied request: not here`)
			},
			Want: `ValidatingAdmissionPolicy 'p' with binding 'p' denied request: not here`,
		},
		"the quota is full": {
			Err: func(_, kind, name string, n int) error {
				return forbidden(kind, name, "exceeded quota: q, requested: count/x=1, used: count/x=%d, limited: count/x=5", 5+n)
			},
			Want: "exceeded quota: q, requested: count/x=1, limited: count/x=5",
		},
		"the namespace is terminating": {
			Err: func(_, kind, name string, _ int) error {
				err := forbidden(kind, name, "unable to create new content in namespace team-a because it is being terminated")
				err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
				return err
			},
			Want: "namespace is being deleted",
		},
		"it is invalid": {
			Err: func(_, kind, name string, _ int) error {
				return apierrors.NewInvalid(schema.GroupKind{Kind: kind}, name, field.ErrorList{field.Invalid(field.NewPath("spec", "color"), "red", "must be blue")})
			},
			Want: `spec.color: Invalid value: "red": must be blue`,
		},
		"the server answers late": {
			Err: func(_, _, _ string, n int) error {
				return apierrors.NewTimeoutError(fmt.Sprintf("request did not complete within %d s", n), n)
			},
			Want: "did not answer in time", Transient: true,
		},
		"a webhook cannot be called": {
			Err: func(_, _, _ string, n int) error {
				return apierrors.NewInternalError(fmt.Errorf(`failed calling webhook "guard.example.com": failed to call webhook: Post "https://guard.svc:443/x": dial tcp 10.0.0.%d:443: connect: connection refused`, n)) //nolint:err113 // the server's words
			},
			Want: `failed calling webhook "guard.example.com"`, Transient: true,
		},
		"the server has an internal error": {
			Err: func(_, _, _ string, n int) error {
				return apierrors.NewInternalError(fmt.Errorf("etcd 10.0.0.%d at 12:00:0%d", n, n)) //nolint:err113 // the server's words
			},
			Want: "the API server had an internal error", Transient: true,
		},
		"the server is unavailable": {
			Err: func(_, _, _ string, n int) error {
				return status(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "etcd 10.0.0.%d is not healthy", n)
			},
			Want: "the API server answered with code 503", Transient: true,
		},
		"it is no answer of the server": {
			Err:  func(string, string, string, int) error { return errOther },
			Want: "an internal error, which the operator's log shows", Transient: true,
		},
		"the server is down": {
			Err: func(_, _, _ string, n int) error {
				return &url.Error{Op: "Post", URL: fmt.Sprintf("https://10.0.0.%d/api", n), Err: errRefused}
			},
			Want: "cannot be reached", Transient: true,
		},
	}
}

var (
	errRefused = errors.New("connect: connection refused")
	errOther   = errors.New("the object has no name")
)

func resource(kind string) schema.GroupResource {
	return schema.GroupResource{Resource: strings.ToLower(kind) + "s"}
}

func forbidden(kind, name, format string, args ...any) *apierrors.StatusError {
	return apierrors.NewForbidden(resource(kind), name, fmt.Errorf(format, args...)) //nolint:err113 // the server's words
}

func status(code int32, reason metav1.StatusReason, format string, args ...any) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: fmt.Sprintf(format, args...)}}
}

// A Server is an API server in memory that refuses some writes. Writes of a status are
// never refused.
type Server struct {
	client.WithWatch
	// Refuse returns the error of a write, or nil; nil: nothing is refused.
	Refuse func(verb, kind, name string) error
	// Now is when objects are created.
	Now time.Time
}

// NewServer makes a Server at gen.Noon with some objects, whose statuses are written on
// their own. Each option sets the client up further, for example with an index.
func NewServer(t *testing.T, objects []client.Object, options ...func(*fake.ClientBuilder)) *Server {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range objects {
		o.SetResourceVersion("") // it is not there yet
	}
	s := &Server{Now: gen.Noon}
	b := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(s.interceptor()).
		WithIndex(&v1alpha1.Decision{}, v1alpha1.DecisionsByRun, func(o client.Object) []string { return []string{o.(*v1alpha1.Decision).Spec.Run} }).
		WithStatusSubresource(&v1alpha1.Agent{}, &v1alpha1.Decision{}, &v1alpha1.Run{}, &v1alpha1.Schedule{}, &v1alpha1.Workflow{})
	for _, set := range options {
		set(b)
	}
	s.WithWatch = b.Build()
	return s
}

// RefuseAll refuses every write with a verb, and of a kind unless that is empty. It
// returns how many there were.
func (s *Server) RefuseAll(verb, kind string, f Failure) (times *int) {
	times = new(int)
	s.Refuse = func(is, of, name string) error {
		if is != verb || kind != "" && of != kind {
			return nil
		}
		*times++
		return f.Err(is, of, name, *times)
	}
	return times
}

func (s *Server) ask(verb string, o client.Object) error {
	if s.Refuse == nil {
		return nil
	}
	return s.Refuse(verb, reflect.TypeOf(o).Elem().Name(), o.GetName())
}

func (s *Server) interceptor() interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := s.ask("create", o); err != nil {
				return err
			}
			o.SetUID(types.UID("uid-" + o.GetName()))
			o.SetCreationTimestamp(metav1.NewTime(s.Now))
			return c.Create(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := s.ask("patch", o); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := s.ask("delete", o); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
	}
}

// A Subject is an object under test.
type Subject struct {
	// Reconcile lets the controller take one step.
	Reconcile func() error
	// Says returns the text of its conditions.
	Says func() string
	// Version returns the resource version of the object.
	Version func() string
	// Final reports whether the subject will not change any more.
	Final func() bool
}

// Check refuses all requests of a kind of write, and checks the conditions of the subject while they fail and after.
func (s *Server) Check(t *testing.T, verb, kind string, f Failure, of Subject) {
	t.Helper()
	times := s.RefuseAll(verb, kind, f)
	err := of.Reconcile()
	said, version := of.Says(), of.Version()
	if *times == 0 {
		t.Fatalf("nothing was refused; it says %q", said)
	}
	if f.Transient == (err == nil) {
		t.Errorf("Reconcile() = %v; a failure that may pass is an error, a refusal is not", err)
	}
	if !strings.Contains(said, f.Want) {
		t.Errorf("it says %q, want it to name %q", said, f.Want)
	}
	if of.Final() {
		return
	}
	_ = of.Reconcile() // it fails again
	if *times < 2 || of.Version() != version {
		t.Errorf("asked %d times, the status changed from %q to %q", *times, said, of.Says())
	}
	s.Refuse = nil
	if err := of.Reconcile(); err != nil {
		t.Fatal(err)
	}
	if text := of.Says(); strings.Contains(text, f.Want) {
		t.Errorf("it is done, and it still says %q", text)
	}
}
