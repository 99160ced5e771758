package policycheck_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/internal/operator/policycheck"
)

// A reader answers every Get with what a test says.
type reader struct {
	client.Reader
	answer func(name string, o client.Object) error
}

func (r reader) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	return r.answer(key.Name, o)
}

func TestEveryPolicyIsChecked(t *testing.T) {
	files, err := filepath.Glob("../../../charts/deckhand/files/policy/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("finding the policies: %v", err)
	}
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		want := "ours-" + strings.TrimSuffix(filepath.Base(file), ".yaml")
		looked := false
		c := policycheck.New(reader{answer: func(name string, _ client.Object) error {
			looked = looked || name == want
			return nil
		}}, "ours", nil, logr.Discard())
		if c.Check(t.Context()); !looked {
			t.Errorf("%s is not looked for", want)
		}
	}
}

func TestMissing(t *testing.T) {
	notFound := apierrors.NewNotFound(schema.GroupResource{}, "p")
	cases := map[string]struct {
		answer func(string, client.Object) error
		want   string
	}{
		"all is there": {func(string, client.Object) error { return nil }, ""},
		"a binding is missing": {func(name string, o client.Object) error {
			if _, is := o.(*admissionregistrationv1.ValidatingAdmissionPolicyBinding); is && name == "ours-runner-pods" {
				return notFound
			}
			return nil
		}, "ValidatingAdmissionPolicyBinding ours-runner-pods"},
		"a policy is missing": {func(name string, o client.Object) error {
			if _, is := o.(*admissionregistrationv1.ValidatingAdmissionPolicy); is && name == "ours-run-spec" {
				return notFound
			}
			return nil
		}, "ValidatingAdmissionPolicy ours-run-spec"},
		"a policy and its binding are missing": {func(name string, _ client.Object) error {
			if name == "ours-decisions" {
				return notFound
			}
			return nil
		}, "ValidatingAdmissionPolicy ours-decisions, ValidatingAdmissionPolicyBinding ours-decisions"},
		"it may not look, so it trusts": {func(string, client.Object) error {
			return apierrors.NewForbidden(schema.GroupResource{}, "p", nil)
		}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := policycheck.New(reader{answer: tc.answer}, "ours", nil, logr.Discard())
			c.Check(t.Context())
			if got, known := c.Missing("team"); got != tc.want || !known {
				t.Errorf("Missing() = %q, %t, want %q", got, known, tc.want)
			}
		})
	}
}

// Where the policies are not bound, no runner starts.
func TestExcludedNamespacesLackAllPolicies(t *testing.T) {
	all := reader{answer: func(string, client.Object) error { return nil }}
	c := policycheck.New(all, "ours", []string{"kube-system"}, logr.Discard())
	c.Check(t.Context())
	if got, _ := c.Missing("kube-system"); !strings.Contains(got, "policies.excludeNamespaces") {
		t.Errorf("in an excluded namespace Missing() = %q", got)
	}
	if got, _ := c.Missing("team"); got != "" {
		t.Errorf("in another namespace Missing() = %q", got)
	}
}

// Before the first check no policy is said to be missing, and a server that is down changes nothing of
// what was known.
func TestWhatIsKnown(t *testing.T) {
	down, missing := errors.New("down"), apierrors.NewNotFound(schema.GroupResource{}, "p") //nolint:err113 // a fault
	var answer error
	c := policycheck.New(reader{answer: func(string, client.Object) error { return answer }}, "ours", nil, logr.Discard())
	is := func(when, want string, wantKnown bool) {
		t.Helper()
		if got, known := c.Missing("team"); !strings.HasPrefix(got, want) || want == "" && got != "" || known != wantKnown {
			t.Errorf("%s: Missing() = %q, %t", when, got, known)
		}
	}
	is("before the first check", "", false)
	answer = down
	c.Check(t.Context())
	is("after a check that failed", "", false)
	answer = missing
	c.Check(t.Context())
	is("after a check", "ValidatingAdmissionPolicy ours-runner-status", true)
	answer = down
	c.Check(t.Context())
	is("after one that failed since", "ValidatingAdmissionPolicy ours-runner-status", true)
}
