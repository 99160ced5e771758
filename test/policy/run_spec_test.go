package policy_test

import (
	"encoding/json"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
)

// input makes a Run with an input; empty: without one.
func input(text string) func(*v1alpha1.Run) {
	return func(r *v1alpha1.Run) {
		if text != "" {
			r.Spec.Input = &runtime.RawExtension{Raw: []byte(text)}
		}
	}
}

// No user changes the input of a Run: not a user with the role for Runs, not the
// operator, not an administrator. A rule of the schema would accept some of these
// changes, because it does not compare keys that one of the two sides lacks.
func TestTheInputOfARunIsFixed(t *testing.T) {
	s := newFixture(t)
	users := map[string]client.Client{
		"a user":           s.As(t, "ann", s.namespace, role(t, "user")...),
		"the operator":     s.As(t, apitest.Operator, s.namespace, role(t, "user")...),
		"an administrator": s.Admin,
	}
	for name, tc := range map[string]struct {
		from, to string
		fixed    bool
	}{
		"other keys, as many":               {`{"a":1,"b":{"x":1}}`, `{"c":7,"d":{"y":2}}`, true},
		"another key":                       {`{"a":1}`, `{"b":1}`, true},
		"another value":                     {`{"a":1}`, `{"a":2}`, true},
		"another type":                      {`{"a":1}`, `{"a":"1"}`, true},
		"one key more":                      {`{"a":1}`, `{"a":1,"b":2}`, true},
		"one key less":                      {`{"a":1,"b":2}`, `{"a":1}`, true},
		"another key of a nested object":    {`{"a":{"x":1}}`, `{"a":{"y":1}}`, true},
		"another value of a nested object":  {`{"a":{"x":{"y":1}}}`, `{"a":{"x":{"y":2}}}`, true},
		"another item":                      {`{"a":[1,2]}`, `{"a":[1,3]}`, true},
		"another order":                     {`{"a":[1,2]}`, `{"a":[2,1]}`, true},
		"one item more":                     {`{"a":[1]}`, `{"a":[1,1]}`, true},
		"another key of an object in list":  {`{"a":[{"x":1}]}`, `{"a":[{"y":1}]}`, true},
		"no items for null":                 {`{"a":null}`, `{"a":[]}`, true},
		"null for a value":                  {`{"a":1}`, `{"a":null}`, true},
		"null for an absent key":            {`{"a":1}`, `{"a":1,"b":null}`, true},
		"null under another key":            {`{"a":null}`, `{"b":null}`, true},
		"an empty object":                   {`{"a":1}`, `{}`, true},
		"no input":                          {`{"a":1}`, ``, true},
		"an input where there was none":     {``, `{"a":1}`, true},
		"an empty one where there was none": {``, `{}`, true},
		"the same":                          {`{"a":1,"b":{"x":[1,{"y":null}],"z":1.5}}`, `{"b":{"z":1.5,"x":[1,{"y":null}]},"a":1}`, false},
		"none where there was none":         {``, ``, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := s.work("", input(tc.from))
			r.GenerateName = "r-"
			s.Create(t, r)
			for user, c := range users {
				changed := r.DeepCopy()
				changed.Spec.Input = nil
				input(tc.to)(changed)
				err := c.Update(t.Context(), changed, client.DryRunAll)
				if tc.fixed && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.input cannot be changed: create another Run")) || !tc.fixed && err != nil {
					t.Errorf("%s: the server says %v", user, err)
				}
			}
		})
	}
}

// An input of the largest size is compared, and what else may change of its Run can
// still be changed.
func TestALargeInputIsCompared(t *testing.T) {
	s := newFixture(t)
	values := map[string]any{}
	for i := range 2000 {
		values["k"+strings.Repeat("x", i%3)+string(rune('a'+i%26))+strings.Repeat("y", i/78)] = []any{i, map[string]any{"n": i}}
	}
	text, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	r := s.work("large", input(string(text)))
	s.Create(t, r)
	if err := s.Admin.Patch(t.Context(), r, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"desiredState":"Paused"}}`))); err != nil {
		t.Errorf("pausing a Run with an input of %d bytes: %v", len(text), err)
	}
	delete(values, "ka")
	values["other"] = 1
	if r.Spec.Input.Raw, err = json.Marshal(values); err != nil {
		t.Fatal(err)
	}
	if err := s.Admin.Update(t.Context(), r, client.DryRunAll); !apierrors.IsInvalid(err) {
		t.Errorf("another key in an input of %d bytes: %v", len(text), err)
	}
}
