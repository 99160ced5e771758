//go:build e2e

package e2e

import (
	"cmp"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// An example is what stands in for the world around a manifest of the examples
// folder, and what the manifest promises.
type example struct {
	// models are what models say, by the name by which a provider knows them.
	models map[string]modeltest.Dialogue
	// pages are what everything else answers, by pattern.
	pages map[string]page
	// person is what a person does meanwhile.
	person func(*exampleFixture)
	// check sees the end: every Run of the manifest is finished by then.
	check func(*exampleFixture)
}

// examples are all of them, by file.
var examples = merged(
	modelExamples, contextExamples, toolExamples, agentExamples, peopleExamples, sandboxExamples, toolsetExamples, durableExamples, workflowExamples, scheduleExamples,
)

func merged[T any](all ...map[string]T) map[string]T {
	whole := map[string]T{}
	for _, some := range all {
		maps.Copy(whole, some)
	}
	return whole
}

// Each manifest of the examples folder does on a cluster what it says. It is
// applied as it is, but that what it would reach on the Internet is in the
// namespace, and so are the Secrets that it names.
func TestExamples(t *testing.T) {
	t.Parallel()
	for _, file := range slices.Sorted(maps.Keys(examples)) {
		t.Run(strings.TrimSuffix(file, ".yaml"), func(t *testing.T) {
			t.Parallel()
			examples[file].play(t, file)
		})
	}
}

func (e example) play(t *testing.T, file string) {
	p := newNamespace(t)
	objects := read(t, file)
	script := modeltest.Script{Key: key, Models: e.models}
	if slices.ContainsFunc(objects, needsNoKey) {
		script.Key = "" // nobody is refused
	}
	if err := serve(t.Context(), p.name, script, e.pages, "pages", "hooks", "search", "harbor"); err != nil {
		t.Fatal(err)
	}
	s := &exampleFixture{testNamespace: p, runs: map[string]*v1alpha1.Run{}}
	for _, o := range objects {
		s.apply(o)
	}
	if e.person != nil {
		e.person(s)
	}
	for name, run := range s.runs {
		s.runs[name] = p.await(run, "finishes", finished)
	}
	e.check(s)
}

// needsNoKey says whether an object is a Model without a key.
func needsNoKey(o *unstructured.Unstructured) bool {
	_, found, err := unstructured.NestedMap(o.Object, "spec", "apiKeySecretRef")
	return o.GetKind() == "Model" && !found && err == nil
}

// read is the objects of a manifest.
func read(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := apitest.ReadObjects(filepath.Join(apitest.Root(), "examples", file))
	if err != nil {
		t.Fatal(err)
	}
	var all []*unstructured.Unstructured
	for _, o := range objects {
		if free, ok := o.(*unstructured.Unstructured); ok {
			all = append(all, free)
		}
	}
	return all
}

// An exampleFixture is an example manifest, applied in a namespace of its own.
type exampleFixture struct {
	*testNamespace
	runs map[string]*v1alpha1.Run
}

// apply creates an object of a manifest.
func (s *exampleFixture) apply(o *unstructured.Unstructured) {
	s.t.Helper()
	s.secrets(o.Object)
	switch o.GetKind() {
	case "Model":
		s.set(o, "http://"+modelsName+"/"+o.GetName(), "spec", "endpoint")
	case "Agent":
		s.search(o)
		s.image(o, "spec", "sandbox", "image")
	case "Toolset":
		s.image(o, "spec", "stdio", "image")
	case "Run":
		s.runs[o.GetName()] = &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: o.GetName()}}
	}
	o.SetNamespace(s.name)
	err := cluster.admin.Create(s.t.Context(), o, &client.CreateOptions{Raw: &metav1.CreateOptions{FieldValidation: "Strict"}})
	if err != nil {
		s.t.Fatalf("creating %s %s: %v", o.GetKind(), o.GetName(), err)
	}
}

func (s *exampleFixture) set(o *unstructured.Unstructured, value any, path ...string) {
	s.t.Helper()
	if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
		s.t.Fatal(err)
	}
}

// image puts an image of the test cluster in the place of one that people have:
// the toolbox, unless a program of the cluster's own is named.
func (s *exampleFixture) image(o *unstructured.Unstructured, path ...string) {
	s.t.Helper()
	image, found, err := unstructured.NestedString(o.Object, path...)
	if err != nil || !found {
		return
	}
	program := "toolbox"
	if own, is := strings.CutPrefix(image, "deckhand.test/"); is {
		program, _, _ = strings.Cut(own, ":")
	}
	s.set(o, imageOf(program), path...)
}

// search points WebSearch to the namespace.
func (s *exampleFixture) search(o *unstructured.Unstructured) {
	s.t.Helper()
	tools, _, err := unstructured.NestedSlice(o.Object, "spec", "tools")
	if err != nil || len(tools) == 0 {
		return
	}
	for _, entry := range tools {
		if tool, ok := entry.(map[string]any); ok && tool["builtin"] == "WebSearch" {
			settings, _ := tool["webSearch"].(map[string]any)
			settings["endpoint"] = "http://search"
		}
	}
	s.set(o, tools, "spec", "tools")
}

// secrets creates the Secrets that a value names, wherever in it.
func (s *exampleFixture) secrets(v any) {
	s.t.Helper()
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			s.secrets(one)
		}
	case map[string]any:
		for field, one := range v {
			s.secrets(one)
			if ref, ok := one.(map[string]any); ok && strings.HasSuffix(strings.ToLower(field), "secretref") {
				name, _ := ref["name"].(string)
				at, _ := ref["key"].(string)
				s.secret(name, at)
			}
		}
	}
}

// secret puts the key of the script into a Secret.
func (s *exampleFixture) secret(name, at string) {
	s.t.Helper()
	if at == "" {
		at = "api-key"
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: name}, StringData: map[string]string{at: key}}
	err := cluster.admin.Create(s.t.Context(), secret)
	if err != nil {
		patch, _ := json.Marshal(map[string]any{"stringData": secret.StringData}) // strings: cannot fail
		err = cluster.admin.Patch(s.t.Context(), secret, client.RawPatch("application/merge-patch+json", patch))
	}
	if err != nil {
		s.t.Fatalf("creating Secret %s: %v", name, err)
	}
}

// ended is a Run that must have ended as wanted.
func (s *exampleFixture) ended(run, want string) *v1alpha1.Run {
	s.t.Helper()
	seen := s.runs[run]
	if got := succeeded(seen); !strings.HasPrefix(got, want+":") {
		s.t.Fatalf("Run %s ended %s, want %s", run, got, want)
	}
	return seen
}

// says is the last word of a Run that finished.
func (s *exampleFixture) says(run string) string {
	s.t.Helper()
	return s.ended(run, "True Finished").Status.Progress.Result.Text
}

// A request is what the server was asked; see test/modelserver.
type request struct {
	Method, Host, Path, Body string
	Header                   map[string][]string
}

// requestsWith are the requests whose method, host and path begin so, oldest first:
// "POST models/claude".
func (s *exampleFixture) requestsWith(prefix string) []request {
	s.t.Helper()
	data, err := cluster.api.CoreV1().Services(s.name).ProxyGet("http", modelsName, "80", "/journal", nil).DoRaw(s.t.Context())
	if err != nil {
		s.t.Fatalf("reading what was asked: %v", err)
	}
	var all, some []request
	if err := json.Unmarshal(data, &all); err != nil {
		s.t.Fatalf("reading what was asked: %v", err)
	}
	for _, r := range all {
		if strings.HasPrefix(r.Method+" "+r.Host+r.Path, prefix) {
			some = append(some, r)
		}
	}
	return some
}

// events are what the first attempt of a Run told of one type.
func (s *exampleFixture) events(run string, of step.EventType) []events.Line {
	s.t.Helper()
	var found []events.Line
	for line := range strings.Lines(s.log(s.t.Context(), run+"-1")) {
		var e events.Line
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			s.t.Fatalf("the log of Run %s holds %q: %v", run, line, err)
		}
		if e.Type == of {
			found = append(found, e)
		}
	}
	return found
}

// steps is the session as the log tells it.
func (s *exampleFixture) steps(run string) []step.Step {
	s.t.Helper()
	var all []step.Step
	for _, e := range s.events(run, step.EventStepFinished) {
		var data struct{ Step step.Step }
		if err := json.Unmarshal(e.Data, &data); err != nil {
			s.t.Fatal(err)
		}
		all = append(all, data.Step)
	}
	return all
}

// results are what the calls of a tool came to, in the order of the calls.
func (s *exampleFixture) results(run, tool string) []step.Step {
	s.t.Helper()
	all := slices.DeleteFunc(s.steps(run), func(st step.Step) bool { return st.Role != step.RoleTool || st.Name != tool })
	slices.SortStableFunc(all, func(a, b step.Step) int {
		return cmp.Or(cmp.Compare(len(a.CallID), len(b.CallID)), strings.Compare(a.CallID, b.CallID))
	})
	return all
}

// has wants a text to hold pieces.
func (s *exampleFixture) has(what, text string, pieces ...string) {
	s.t.Helper()
	for _, piece := range pieces {
		if !strings.Contains(text, piece) {
			s.t.Errorf("%s lacks %q: %s", what, piece, text)
		}
	}
}

// lacks wants a text not to hold pieces.
func (s *exampleFixture) lacks(what, text string, pieces ...string) {
	s.t.Helper()
	for _, piece := range pieces {
		if strings.Contains(text, piece) {
			s.t.Errorf("%s holds %q: %s", what, piece, text)
		}
	}
}
