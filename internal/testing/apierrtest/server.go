package apierrtest

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

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
