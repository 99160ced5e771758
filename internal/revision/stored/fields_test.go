package stored_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/stored"
)

// A filler sets fields of objects of the API to values that the API allows.
type filler struct {
	count int
	// skip says whether an optional field stays empty.
	skip func() bool
}

func (f *filler) fill(v reflect.Value) {
	f.count++
	text := fmt.Sprintf("text-%d", f.count)
	switch p := v.Addr().Interface().(type) {
	case *v1alpha1.Duration:
		*p = v1alpha1.Duration(fmt.Sprintf("%dh%dm0s", f.count, f.count%60))
	case *v1alpha1.Money:
		*p = v1alpha1.Money(fmt.Sprintf("%d.25USD", f.count))
	case *v1alpha1.Tokens:
		*p = v1alpha1.Tokens(fmt.Sprint(f.count))
	case *v1alpha1.Decimal:
		*p = "0.5"
	case *v1alpha1.Order:
		*p = v1alpha1.OrderSequential
	case *v1alpha1.OnFailure:
		*p = v1alpha1.OnFailureContinue
	case *v1alpha1.WhenReached:
		*p = v1alpha1.WhenReachedAsk
	case *v1alpha1.FieldType:
		*p = v1alpha1.FieldList
	case *v1alpha1.Durability:
		*p = v1alpha1.DurabilityVolume
	case *v1alpha1.KeepVolume:
		*p = v1alpha1.KeepVolumeNever
	case *v1alpha1.WorkspaceAccess:
		*p = v1alpha1.WorkspaceAccessReadOnly
	case *v1alpha1.RunIn:
		*p = v1alpha1.RunInContainer
	case *v1alpha1.Approvers: // without names it says nothing, and is not stored
		p.Groups, p.Users = []string{text}, []string{text}
	case *runtime.RawExtension:
		p.Raw = fmt.Appendf(nil, `{"a":%q}`, text)
	case *resource.Quantity:
		*p = resource.MustParse(fmt.Sprint(f.count))
	case *metav1.Duration:
		p.Duration++
	default:
		f.fillKind(v, text)
	}
}

func (f *filler) fillKind(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(f.count))
	case reflect.Pointer:
		if !f.skip() {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem())
		}
	case reflect.Slice:
		if !f.skip() {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			f.fill(v.Index(0))
		}
	case reflect.Map:
		if !f.skip() {
			value := reflect.New(v.Type().Elem()).Elem()
			f.fill(value)
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(reflect.ValueOf(text).Convert(v.Type().Key()), value)
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			f.fill(field)
		}
	default:
		panic("no value for " + v.Type().String())
	}
}

// Whatever a Workflow says is read back as it was, but what no Run depends on.
func TestEveryFieldOfAWorkflowIsReadBack(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		f := filler{skip: func() bool { return seed > 0 && random.IntN(3) == 0 }}
		var want v1alpha1.WorkflowSpec
		f.fill(reflect.ValueOf(&want).Elem())
		read, err := stored.DecodeWorkflow(encode(t, stored.WorkflowOf("w", want)))
		if err != nil {
			t.Fatal(err)
		}
		want.Description = ""
		if got := read.Spec(); read.Name != "w" || !equality.Semantic.DeepEqual(want, got) {
			t.Fatalf("seed %d: a field of the API is lost in the stored form: store it, or list it here if no Run depends on it (-want +got):\n%s", seed, cmp.Diff(want, got))
		}
	}
}

func TestValuesWithADefaultAreReadBack(t *testing.T) {
	plain := v1alpha1.WorkflowSpec{Order: v1alpha1.OrderGraph, Nodes: []v1alpha1.Node{{Name: "n", OnFailure: v1alpha1.OnFailureFail, Limits: &v1alpha1.Limits{}}}}
	if diff := cmp.Diff(plain, stored.WorkflowOf("w", plain).Spec()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, of := range []v1alpha1.FieldType{"", v1alpha1.FieldString, v1alpha1.FieldInteger, v1alpha1.FieldNumber, v1alpha1.FieldBoolean, v1alpha1.FieldList, v1alpha1.FieldObject} {
		spec := v1alpha1.WorkflowSpec{Input: &v1alpha1.Input{Fields: []v1alpha1.Field{{Name: "p", Type: of}}}}
		if got := stored.WorkflowOf("w", spec).Spec().Input.Fields[0].Type; got != of {
			t.Errorf("type %q is read back as %q", of, got)
		}
	}
}

// notStored are the fields of an Agent and a Toolset that the operator does not read
// of a revision: they are in the snapshot for the runner, or no Run in flight depends
// on them.
var notStored = []string{
	"agent.description", "agent.instructions", "agent.model", "agent.inference", "agent.routes", "agent.input", "agent.output",
	"agent.tools", "agent.policy", "agent.hooks", "agent.parallelTools", "agent.log",
	"agent.events", "agent.podRetention", "agent.workspace.instructions", "agent.workspace.retain", "agent.workspace.retention", // replaced
	"agent.concurrency", // of the current Agent, not of a revision
	"agent.limits.steps", "agent.limits.modelCalls", "agent.limits.toolCalls", "agent.limits.depth", "agent.limits.tokens", "agent.limits.cost",
	"agent.limits.duration", "agent.limits.wait", "agent.limits.modelOutage", "agent.limits.whenReached",
	"agent.skills", "agent.workspace.git", "agent.workspace.files[].path", "agent.workspace.agentsFile",
	"agent.sandbox.image", "agent.sandbox.egress", "agent.sandbox.confinement", "agent.sandbox.processes",
	"toolset.stdio.command", "toolset.http", "toolset.requests", "toolset.offer", "toolset.readOnly", "toolset.idempotent", "toolset.trustHints",
	"toolset.description", "toolset.timeout", "toolset.required",
	"toolset.stdio.runIn",       // only a server with a container of its own is stored
	"toolset.stdio.env[].value", // beside a secret; alone it is stored
}

func TestEveryFieldOfAnAgentIsStoredOrListed(t *testing.T) {
	var agent struct {
		Agent   v1alpha1.AgentSpec   `json:"agent"`
		Toolset v1alpha1.ToolsetSpec `json:"toolset"`
	}
	whole := reflect.ValueOf(&agent).Elem()
	(&filler{skip: func() bool { return false }}).fill(whole)
	form := func() string {
		return string(encode(t, stored.AgentOf("a", agent.Agent, map[string]v1alpha1.ToolsetSpec{"set": agent.Toolset})))
	}
	with, met := form(), map[string]bool{}
	leaves(whole, "", func(path string, field reflect.Value) {
		had := reflect.ValueOf(field.Interface())
		field.SetZero()
		isStored := form() != with
		field.Set(had)
		listed := slices.IndexFunc(notStored, func(l string) bool {
			return path == l || strings.HasPrefix(path, l+".") || strings.HasPrefix(path, l+"[")
		})
		if listed >= 0 {
			met[notStored[listed]] = true
		}
		if isStored == (listed >= 0) {
			t.Errorf("%s: stored %t, listed as not stored %t. Store a field that the operator reads of a revision; list one that only the runner reads", path, isStored, listed >= 0)
		}
	})
	for _, path := range notStored {
		if !met[path] {
			t.Errorf("%s is listed as not stored, and is not a field", path)
		}
	}
}

// leaves visits all fields of structs of this module that hold no such struct.
func leaves(v reflect.Value, path string, visit func(string, reflect.Value)) {
	inner := v
	for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
		if inner.Kind() == reflect.Slice {
			path += "[]"
			inner = inner.Index(0)
			continue
		}
		inner = inner.Elem()
	}
	if inner.Kind() != reflect.Struct || path != "" && !strings.HasPrefix(inner.Type().PkgPath(), "github.com/deckhand-dev/deckhand/") {
		visit(strings.TrimSuffix(path, "[]"), v)
		return
	}
	for i := range inner.NumField() {
		name, _, _ := strings.Cut(inner.Type().Field(i).Tag.Get("json"), ",")
		at := name
		if path != "" {
			at = strings.TrimSuffix(path+"."+name, ".")
		}
		leaves(inner.Field(i), at, visit)
	}
}
