package cli

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/gen"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// A session is a user of the command line in namespace team-a of a fake cluster.
type session struct {
	*Factory
	client   client.Client
	out, err bytes.Buffer
}

func newSession(t *testing.T, objects ...client.Object) *session {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	s := &session{}
	s.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&corev1.Event{}, "involvedObject.uid", func(o client.Object) []string {
			return []string{string(o.(*corev1.Event).InvolvedObject.UID)}
		}).
		WithInterceptorFuncs(interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if review, ok := o.(*authenticationv1.SelfSubjectReview); ok {
				review.Status.UserInfo = authenticationv1.UserInfo{Username: "ann", Groups: []string{"release-managers", "system:authenticated"}}
				return nil
			}
			return c.Create(ctx, o, options...)
		}}).Build()
	s.Factory = &Factory{In: strings.NewReader(""), Out: &s.out, Err: &s.err, Now: func() time.Time { return gen.Noon.Add(time.Hour) }}
	s.newClient = func() (client.Client, error) { return s.client, nil }
	return s
}

// run runs a command and returns its exit code.
func (s *session) run(t *testing.T, args ...string) int {
	t.Helper()
	s.out.Reset()
	s.err.Reset()
	empty := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(empty, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	return Main(t.Context(), s.Factory, "v1.2.3", append([]string{"--kubeconfig", empty, "--namespace", gen.Namespace}, args...))
}

// text is everything that was printed: the output, and the errors behind it.
func (s *session) text() string { return s.out.String() + s.err.String() }

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got), -update rewrites it:\n%s", path, diff)
	}
}

// namedRun returns a Run with a UID of its own and a Succeeded condition of a reason.
func namedRun(name, reason string, mods ...func(*v1alpha1.Run)) *v1alpha1.Run {
	return gen.Run(append([]func(*v1alpha1.Run){func(r *v1alpha1.Run) {
		r.Name, r.UID, r.ResourceVersion = name, types.UID("uid-of-"+name), ""
		r.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionUnknown, Reason: reason}}
	}}, mods...)...)
}

func TestVersionIsThatOfTheBuild(t *testing.T) {
	s := newSession(t)
	if code := s.run(t, "version"); code != exitOK || s.text() != "v1.2.3\n" {
		t.Errorf("exit code %d, printed %q", code, s.text())
	}
}

func TestWrongCommandLinesAreUsageErrors(t *testing.T) {
	for _, args := range [][]string{{"lits"}, {"list", "--wat"}, {"list", "extra"}, {"list", "-o", "xml"}, {"list", "-l", "a b"}} {
		s := newSession(t)
		if code := s.run(t, args...); code != exitUsage || !strings.HasPrefix(s.err.String(), "Error: ") {
			t.Errorf("%v: exit code %d, printed %s", args, code, s.text())
		}
	}
}
