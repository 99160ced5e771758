package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	chart "github.com/deckhand-dev/deckhand/charts/deckhand"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// A session is a user of the command line in namespace team-a of a fake cluster.
type session struct {
	*Factory
	client   client.Client
	out, err bytes.Buffer
	// forbidden are verbs and resources that the user does not have the rights for.
	forbidden []string
}

func newSession(t *testing.T, objects ...client.Object) *session {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	s := &session{}
	s.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(targets(), objects...)...).
		WithIndex(&corev1.Event{}, "involvedObject.uid", func(o client.Object) []string {
			return []string{string(o.(*corev1.Event).InvolvedObject.UID)}
		}).
		WithInterceptorFuncs(interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if review, ok := o.(*authenticationv1.SelfSubjectReview); ok {
				review.Status.UserInfo = authenticationv1.UserInfo{Username: "ann", Groups: []string{"release-managers", "system:authenticated"}}
				return nil
			}
			if review, ok := o.(*authorizationv1.SelfSubjectAccessReview); ok {
				a := review.Spec.ResourceAttributes
				review.Status.Allowed = !slices.Contains(s.forbidden, strings.TrimSuffix(a.Verb+" "+a.Resource+"/"+a.Subresource, "/"))
				return nil
			}
			return c.Create(ctx, o, options...)
		}}).Build()
	s.Factory = &Factory{Streams: terminal.Streams{In: strings.NewReader(""), Out: &s.out, Err: &s.err, Now: func() time.Time { return gen.Noon.Add(time.Hour) }, Interval: time.Millisecond}}
	s.newClient = func() (client.Client, error) { return s.client, nil }
	s.readTable = s.table
	return s
}

// table is the answer of an API server that has the columns of the CRD.
func (s *session) table(ctx context.Context, namespace string, options metav1.ListOptions) ([]byte, error) {
	var runs v1alpha1.RunList
	selected, err := labels.Parse(options.LabelSelector)
	if err != nil {
		return nil, err
	}
	if err := s.client.List(ctx, &runs, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selected}); err != nil {
		return nil, err
	}
	return tableOf(ctx, &runs)
}

func tableOf(ctx context.Context, runs *v1alpha1.RunList) ([]byte, error) {
	var crd apiextensionsv1.CustomResourceDefinition
	data, err := chart.CRDs.ReadFile("files/crd/deckhand.dev_runs.yaml")
	if err != nil {
		return nil, err
	}
	if err := yaml.Unmarshal(data, &crd); err != nil {
		return nil, err
	}
	convertor, err := tableconvertor.New(crd.Spec.Versions[0].AdditionalPrinterColumns)
	if err != nil {
		return nil, err
	}
	table, err := convertor.ConvertToTable(ctx, runs, nil)
	if err != nil {
		return nil, err
	}
	for i := range table.Rows {
		table.Rows[i].Object.Object = meta.AsPartialObjectMetadata(&runs.Items[i])
	}
	return json.Marshal(table)
}

// targets are the Agents and the Workflow that tests run.
func targets() []client.Object {
	all := []client.Object{&v1alpha1.Workflow{ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: "release"}}}
	for _, name := range []string{"poet", "fixer", "a.b"} {
		all = append(all, gen.Agent(func(a *v1alpha1.Agent) { a.Name, a.ResourceVersion = name, "" }))
	}
	return all
}

// types lets the user answer questions at a terminal, one after another, and returns the
// keyboard.
func (s *session) types(t *testing.T, answers ...string) io.Writer {
	t.Helper()
	keyboard, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keyboard.Close(); tty.Close() })
	s.In = tty
	s.Err = writerFunc(func(text []byte) (int, error) {
		if question := strings.TrimRight(string(text), ": "); strings.HasSuffix(question, "]") {
			if len(answers) == 0 {
				t.Errorf("nobody answers %q", text)
				answers = []string{"\n"}
			}
			if _, err := io.WriteString(keyboard, answers[0]); err != nil {
				t.Error(err)
			}
			answers = answers[1:]
		}
		return s.err.Write(text)
	})
	return keyboard
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(text []byte) (int, error) { return f(text) }

// run runs a command and returns its exit code.
func (s *session) run(t *testing.T, args ...string) int {
	t.Helper()
	return s.runUntil(t.Context(), t, args...)
}

// runUntil runs a command until it ends or is interrupted.
func (s *session) runUntil(ctx context.Context, t *testing.T, args ...string) int {
	t.Helper()
	s.out.Reset()
	s.err.Reset()
	empty := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(empty, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	return Main(ctx, s.Factory, "v1.2.3", append([]string{"--kubeconfig", empty, "--namespace", gen.Namespace}, args...))
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
	if code := s.run(t, "version"); code != exit.OK || s.text() != "v1.2.3\n" {
		t.Errorf("exit code %d, printed %q", code, s.text())
	}
}

func TestInvalidCommandLinesAreUsageErrors(t *testing.T) {
	for _, line := range []string{
		"lits", "list --wat", "list extra", "list -o xml", "list -l a:b",
		"run -f - -p -", "list --limit=-1", "logs fix --attempt=-1", "pending fix -A", "grant fix --steps=-5 --cost=1USD",
	} {
		s, args := newSession(t), strings.Fields(line)
		if code := s.run(t, args...); code != exit.Usage || !strings.HasPrefix(s.err.String(), "Error: ") {
			t.Errorf("%v: exit code %d, printed %s", args, code, s.text())
		}
	}
}
