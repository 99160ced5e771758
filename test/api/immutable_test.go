package api_test

import (
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
)

// free are the fields of a Run that may change. Every other field, those added later
// too, is fixed.
var free = map[string]bool{"desiredState": true, "ttlSecondsAfterFinished": true}

// values are two different values for each field of a Run's spec.
var values = map[string][2]any{
	"agent":                   {"a", "b"},
	"workflow":                {"a", "b"},
	"prompt":                  {"Do it.", "Do that."},
	"images":                  {[]any{"a.png"}, []any{"b.png"}},
	"input":                   {map[string]any{"a": int64(1)}, map[string]any{"a": int64(2)}},
	"continueFrom":            {map[string]any{"run": "a"}, map[string]any{"run": "b"}},
	"user":                    {"ann", "bob"},
	"limits":                  {map[string]any{"steps": int64(3)}, map[string]any{"steps": int64(4)}},
	"maxRetries":              {int64(2), int64(3)},
	"maxDisruptions":          {int64(2), int64(3)},
	"desiredState":            {"Running", "Stopped"},
	"ttlSecondsAfterFinished": {int64(1), int64(2)},
}

// keys are two values with as many keys, but other ones, for each field of a Run's spec
// that is an object.
var keys = map[string][2]any{
	"continueFrom": {map[string]any{"run": "a", "step": int64(3), "uid": "3fa85f64-5717-4562-b3fc-2c963f66afa6"}, map[string]any{"run": "a", "workspace": "Fresh"}},
	"input":        {map[string]any{"a": int64(1), "b": map[string]any{"x": int64(1)}}, map[string]any{"c": int64(7), "d": map[string]any{"y": int64(2)}}},
	"limits":       {map[string]any{"steps": int64(3), "tokens": "1k"}, map[string]any{"cost": "1USD", "duration": "1h"}},
}

// Each field is set, changed and unset after creation, the Go type saying which
// fields there are.
func TestWorkOfARunIsFixed(t *testing.T) {
	namespace := apitest.Get(t).Namespace(t)
	for f := range reflect.TypeFor[v1alpha1.RunSpec]().Fields() {
		field, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		two, known := values[field]
		if !known {
			t.Errorf("field %s is new: give it two values here", field)
			continue
		}
		for change, fromTo := range map[string][2]any{"set": {nil, two[0]}, "changed": {two[0], two[1]}, "unset": {two[0], nil}} {
			t.Run(field+" "+change, func(t *testing.T) { changes(t, namespace, field, fromTo) })
		}
		if _, is := two[0].(map[string]any); !is {
			continue
		}
		fromTo, known := keys[field]
		if !known {
			t.Errorf("field %s is an object: give it two values with other keys here", field)
			continue
		}
		t.Run(field+" with other keys", func(t *testing.T) { changes(t, namespace, field, fromTo) })
	}
}

// A rule of the schema that compares free-form JSON accepts other keys. So a field of a
// Decision, which the schema fixes, may not have it. The spec of a Run is fixed by the
// admission policy deckhand-run-spec, which compares all keys.
func TestNoFieldFixedByTheSchemaIsFreeForm(t *testing.T) {
	for kind, want := range map[string][]string{"decisions": nil} {
		var crd struct {
			Spec struct {
				Versions []struct {
					Schema struct {
						OpenAPIV3Schema struct {
							Properties map[string]map[string]any
						} `json:"openAPIV3Schema"`
					}
				}
			}
		}
		text, err := os.ReadFile(apitest.Manifest("crd", "deckhand.dev_"+kind+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(text, &crd); err != nil {
			t.Fatal(err)
		}
		for _, version := range crd.Spec.Versions {
			if got := freeForm("spec", version.Schema.OpenAPIV3Schema.Properties["spec"]); !slices.Equal(got, want) {
				t.Errorf("free-form fields of %s are %v, want %v", kind, got, want)
			}
		}
	}
}

// freeForm returns the paths of a schema's fields whose keys the schema does not know.
func freeForm(path string, schema map[string]any) []string {
	if schema["x-kubernetes-preserve-unknown-fields"] == true {
		return []string{path}
	}
	var out []string
	properties, _ := schema["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		below, _ := properties[name].(map[string]any)
		out = append(out, freeForm(path+"."+name, below)...)
	}
	for _, of := range []string{"items", "additionalProperties"} {
		if below, is := schema[of].(map[string]any); is {
			out = append(out, freeForm(path+"[]", below)...)
		}
	}
	return out
}

// changes makes a Run with one value of a field and tries to give it another. Fields that
// the value does not go with change too, so that the schema accepts the Run.
func changes(t *testing.T, namespace, field string, fromTo [2]any) {
	t.Helper()
	s := apitest.Get(t)
	o := runWith(t, field, fromTo[0])
	o.SetNamespace(namespace)
	s.Create(t, o)
	was := o.DeepCopy()
	o.Object["spec"] = runWith(t, field, fromTo[1]).Object["spec"]
	err := s.Admin.Update(t.Context(), o, client.DryRunAll)
	switch {
	case free[field]:
		if err != nil {
			t.Errorf("refused: %v", err)
		}
	case err == nil && reflect.DeepEqual(was.Object["spec"], o.Object["spec"]):
		// The same again is no change: a default has filled in what was unset.
	case err == nil || !strings.Contains(err.Error(), "spec."+field) || !strings.Contains(err.Error(), " cannot be changed: create another Run"):
		t.Errorf("the server says %v to %v", err, o.Object["spec"])
	}
}

// runWith is a Run that can be created, with a value of a field or without it.
func runWith(t *testing.T, field string, value any) *unstructured.Unstructured {
	t.Helper()
	rest := ""
	switch {
	case field == "agent" && value == nil:
		rest = "spec: {agent: null, prompt: null, workflow: w}"
	case field == "workflow" && value != nil:
		rest = "spec: {agent: null, prompt: null}"
	case field == "prompt" && value == nil:
		rest = "spec: {prompt: null, input: {a: 1}}"
	}
	o := object(t, run, "metadata: {name: null, generateName: r-}\n"+rest)
	put(o, field, value)
	return o
}

func put(o *unstructured.Unstructured, field string, value any) {
	if value == nil {
		unstructured.RemoveNestedField(o.Object, "spec", field)
		return
	}
	_ = unstructured.SetNestedField(o.Object, value, "spec", field) // our own values fit
}

// A finished Run stays as it is, whoever asks.
func TestOutcomeOfARunIsFinal(t *testing.T) {
	s := apitest.Get(t)
	o := runWith(t, "prompt", "Do it.")
	o.SetNamespace(s.Namespace(t))
	s.Create(t, o)
	finish := `{"status":{"completionTime":"2030-01-01T00:00:00Z","observedGeneration":1,"conditions":[{"type":"Succeeded","status":"False","reason":"Stopped","message":"m","lastTransitionTime":"2030-01-01T00:00:00Z"}]}}`
	patchStatus := func(text string) error {
		return s.Admin.Status().Patch(t.Context(), o.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(text)))
	}
	if err := patchStatus(finish); err != nil {
		t.Fatalf("finishing the Run: %v", err)
	}
	for name, tc := range map[string]struct{ patch, want string }{
		"its time of completion":    {`{"status":{"completionTime":"2031-01-01T00:00:00Z"}}`, "completionTime cannot be changed"},
		"that it is finished":       {`{"status":{"completionTime":null}}`, "completionTime cannot be removed"},
		"its outcome":               {strings.Replace(finish, `"False"`, `"True"`, 1), "the condition Succeeded of a finished Run cannot be changed"},
		"its reason":                {strings.Replace(finish, `"Stopped"`, `"Finished"`, 1), "the condition Succeeded of a finished Run cannot be changed"},
		"its conditions":            {`{"status":{"conditions":null}}`, "the condition Succeeded of a finished Run cannot be changed"},
		"its generation may follow": {`{"status":{"observedGeneration":2}}`, ""},
		"its message may be longer": {strings.Replace(finish, `"m"`, `"m, kept"`, 1), ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := patchStatus(tc.patch)
			if tc.want == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the server says %v, want it to say %q", err, tc.want)
			}
		})
	}
}

// The outcome of a finished Run cannot be changed by another desired state. The status
// can still be patched, and so can what may change of the spec.
func TestTheDesiredStateOfAFinishedRunIsFixed(t *testing.T) {
	s := apitest.Get(t)
	o := runWith(t, "prompt", "Do it.")
	o.SetNamespace(s.Namespace(t))
	s.Create(t, o)
	patch := func(text string) error {
		return s.Admin.Patch(t.Context(), o.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(text)))
	}
	patchStatus := func(text string) {
		t.Helper()
		if err := s.Admin.Status().Patch(t.Context(), o.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(text))); err != nil {
			t.Fatal(err)
		}
	}
	for _, state := range []string{"Paused", "Running", "Stopped"} {
		if err := patch(`{"spec":{"desiredState":"` + state + `"}}`); err != nil {
			t.Errorf("%s of a Run that has not finished: %v", state, err)
		}
	}
	patchStatus(`{"status":{"completionTime":"2030-01-01T00:00:00Z","conditions":[{"type":"Succeeded","status":"False","reason":"Stopped","message":"m","lastTransitionTime":"2030-01-01T00:00:00Z"}]}}`)
	want := "spec.desiredState cannot be changed: Run " + o.GetName() + " has finished; create another Run"
	for _, state := range []string{"Paused", "Running"} {
		if err := patch(`{"spec":{"desiredState":"` + state + `"}}`); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s of a finished Run: %v, want %q", state, err, want)
		}
	}
	for _, text := range []string{`{"spec":{"desiredState":"Stopped"}}`, `{"spec":{"ttlSecondsAfterFinished":60}}`, `{"metadata":{"labels":{"a":"b"}}}`, `{"metadata":{"finalizers":["a.example/b"]}}`, `{"metadata":{"finalizers":null}}`} {
		if err := patch(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	patchStatus(`{"status":{"observedGeneration":9}}`)
}

// No field of a Decision can be set, changed or unset, whatever fields there
// are; nor can what became of it.
func TestADecisionIsFixed(t *testing.T) {
	s := apitest.Get(t)
	namespace := s.Namespace(t)
	changed := map[string]any{"run": "q", "request": "s4c1", "type": "Message", "value": "next", "images": []any{"a.png"}, "digest": strings.Repeat("d", 64), "scope": "Run", "groups": []any{"admins"}, "grant": map[string]any{"steps": int64(1)}, "reason": "because", "by": "eve"}
	for f := range reflect.TypeFor[v1alpha1.DecisionSpec]().Fields() {
		field, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if changed[field] == nil {
			t.Errorf("field %s is new: give it another value here", field)
		}
		for _, to := range []any{changed[field], nil} {
			o := object(t, decision, "metadata: {name: null, generateName: d-}\nspec: {request: null}")
			o.SetNamespace(namespace)
			s.Create(t, o)
			was := o.DeepCopy()
			put(o, field, to)
			if err := s.Admin.Update(t.Context(), o, client.DryRunAll); err == nil && !reflect.DeepEqual(was.Object["spec"], o.Object["spec"]) {
				t.Errorf("%s of a Decision was changed to %v", field, to)
			}
		}
	}
}

func TestWhatBecameOfADecisionIsFinal(t *testing.T) {
	s := apitest.Get(t)
	o := object(t, decision, "")
	o.SetNamespace(s.Namespace(t))
	s.Create(t, o)
	apply := func(status, reason string) error {
		text := `{"status":{"conditions":[{"type":"Applied","status":"` + status + `","reason":"` + reason + `","message":"m","lastTransitionTime":"2030-01-01T00:00:00Z"}]}}`
		return s.Admin.Status().Patch(t.Context(), o.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(text)))
	}
	for _, step := range []struct{ status, reason, want string }{
		{"Unknown", "Waiting", ""},
		{"True", "Applied", ""},
		{"False", "Refused", "cannot be changed"},
		{"Unknown", "Waiting", "cannot be changed"},
		{"True", "Applied", ""},
	} {
		err := apply(step.status, step.reason)
		if step.want == "" && err != nil || step.want != "" && (err == nil || !strings.Contains(err.Error(), step.want)) {
			t.Errorf("Applied=%s: the server says %v, want it to say %q", step.status, err, step.want)
		}
	}
}
