package gitops_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	lua "github.com/yuin/gopher-lua"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/statuspatch"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
)

var update = flag.Bool("update", false, "rewrite the table of docs/gitops.md")

// A healthCase is a state of an object, as the operator writes it, and the health that
// the tools must see.
type healthCase struct {
	kind, reason string
	status       metav1.ConditionStatus
	kstatus      status.Status
	argo         string
}

// readyKinds are the kinds with the condition Ready.
var readyKinds = []string{"Model", "Toolset", "Agent", "Workflow", "Schedule"}

// userReasons are the reasons of what a user continues.
var userReasons = []string{v1alpha1.ReasonAwaitingApproval, v1alpha1.ReasonAwaitingAnswer, v1alpha1.ReasonPaused, v1alpha1.ReasonSuspended}

// readyReason is a reason of Ready in api/v1alpha1/conditions.go, with its status.
var readyReason = regexp.MustCompile(`^Reason[A-Za-z]+ \((True|False)\)`)

// readyCases returns a case for each reason of Ready.
func readyCases(t *testing.T) []healthCase {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../api/v1alpha1/conditions.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var cases []healthCase
	for _, declaration := range file.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Doc.Text() != "Reasons of Ready and Durable.\n" {
			continue
		}
		for _, spec := range group.Specs {
			value, ok := spec.(*ast.ValueSpec)
			m := readyReason.FindStringSubmatch(value.Doc.Text())
			if !ok || m == nil {
				t.Fatalf("a reason has no status: %s", value.Doc.Text())
			}
			reason, err := strconv.Unquote(value.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(reason, "Durability") { // of the condition Durable
				cases = append(cases, readyCase(reason, metav1.ConditionStatus(m[1])))
			}
		}
	}
	if len(cases) < 10 {
		t.Fatalf("conditions.go has %d reasons of Ready", len(cases))
	}
	return cases
}

func readyCase(reason string, ready metav1.ConditionStatus) healthCase {
	c := healthCase{kind: "Ready", reason: reason, status: ready, kstatus: status.FailedStatus, argo: "Degraded"}
	switch {
	case reason == v1alpha1.ReasonSuspended:
		c.kstatus, c.argo = status.CurrentStatus, "Suspended"
	case ready == metav1.ConditionTrue:
		c.kstatus, c.argo = status.CurrentStatus, "Healthy"
	case slices.Contains(v1alpha1.WaitingReasons, reason):
		c.kstatus, c.argo = status.InProgressStatus, "Progressing"
	}
	return c
}

// healthCases returns every state of every kind.
func healthCases(t *testing.T) []healthCase {
	t.Helper()
	cases := readyCases(t)
	for _, reason := range v1alpha1.ActiveReasons {
		argo := "Progressing"
		if slices.Contains(userReasons, reason) {
			argo = "Suspended"
		}
		cases = append(cases, healthCase{"Run", reason, metav1.ConditionUnknown, status.InProgressStatus, argo})
	}
	for _, reason := range []string{v1alpha1.ReasonFinished, v1alpha1.ReasonReused} {
		cases = append(cases, healthCase{"Run", reason, metav1.ConditionTrue, status.CurrentStatus, "Healthy"})
	}
	for _, reason := range v1alpha1.FailureReasons {
		cases = append(cases, healthCase{"Run", reason, metav1.ConditionFalse, status.FailedStatus, "Degraded"})
	}
	return append(cases,
		healthCase{"Decision", v1alpha1.ReasonWaiting, metav1.ConditionUnknown, status.InProgressStatus, "Progressing"},
		healthCase{"Decision", v1alpha1.ReasonApplied, metav1.ConditionTrue, status.CurrentStatus, "Healthy"},
		healthCase{"Decision", v1alpha1.ReasonRefused, metav1.ConditionFalse, status.FailedStatus, "Degraded"})
}

// object returns the object of a case with the status that the operator writes.
func (c healthCase) object(t *testing.T, kind string) *unstructured.Unstructured {
	t.Helper()
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	var conditions []metav1.Condition
	switch c.kind {
	case "Run":
		run := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Spec: v1alpha1.RunSpec{Agent: "a"}}
		runstatus.Outcome{Status: c.status, Reason: c.reason, Message: "why"}.WriteStatus(&run.Status, run, at)
		conditions = run.Status.Conditions
	case "Decision":
		applied := metav1.Condition{Type: v1alpha1.ConditionApplied, Status: c.status, Reason: c.reason, Message: "why"}
		conditions = statuspatch.WithProgress(applied, c.status == metav1.ConditionUnknown)
	default:
		conditions = statuspatch.ReadyConditions(metav1.Condition{Type: v1alpha1.ConditionReady, Status: c.status, Reason: c.reason, Message: "why"})
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1alpha1.ModelStatus{ObservedGeneration: 2, Conditions: conditions})
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": kind,
		"metadata": map[string]any{"name": "x", "generation": int64(2)}, "status": content,
	}}
}

// kinds returns the kinds that have the states of a case.
func (c healthCase) kinds() []string {
	if c.kind == "Ready" {
		return readyKinds
	}
	return []string{c.kind}
}

// argoRule returns the rule of docs/gitops for a kind, as Argo CD finds it.
func argoRule(t *testing.T, kind string) string {
	t.Helper()
	var config struct{ Data map[string]string }
	text, err := os.ReadFile("../../docs/gitops/argocd-health.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &config)
	}
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string]map[string]string{}
	if err := yaml.UnmarshalStrict([]byte(config.Data["resource.customizations"]), &rules); err != nil {
		t.Fatal(err)
	}
	for pattern, rule := range rules {
		if matches, err := path.Match(pattern, "deckhand.dev/"+kind); err == nil && matches {
			return rule["health.lua"]
		}
	}
	t.Fatalf("no rule is for %s", kind)
	return ""
}

// argoHealth runs the rule as Argo CD does: with the object as a global variable, and
// with the basic functions and those of tables only.
func argoHealth(t *testing.T, o *unstructured.Unstructured) (health, message string) {
	t.Helper()
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	for _, open := range []lua.LGFunction{lua.OpenBase, lua.OpenTable} {
		l.Push(l.NewFunction(open))
		l.Call(0, 0)
	}
	l.SetGlobal("obj", toLua(l, o.Object))
	if err := l.DoString(argoRule(t, o.GetKind())); err != nil {
		t.Fatal(err)
	}
	result, ok := l.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the rule returned %v", l.Get(-1))
	}
	return result.RawGetString("status").String(), result.RawGetString("message").String()
}

// toLua returns a value of JSON as one of Lua.
func toLua(l *lua.LState, value any) lua.LValue {
	switch v := value.(type) {
	case map[string]any:
		table := l.NewTable()
		for key, element := range v {
			table.RawSetString(key, toLua(l, element))
		}
		return table
	case []any:
		table := l.NewTable()
		for _, element := range v {
			table.Append(toLua(l, element))
		}
		return table
	case string:
		return lua.LString(v)
	case int64:
		return lua.LNumber(v)
	case bool:
		return lua.LBool(v)
	default:
		return lua.LNil
	}
}

func kstatusOf(t *testing.T, o *unstructured.Unstructured) status.Status {
	t.Helper()
	result, err := status.Compute(o)
	if err != nil {
		t.Fatal(err)
	}
	return result.Status
}

// kstatus and the rule for Argo CD see each state of each kind as it is.
func TestToolsSeeTheHealthOfEveryState(t *testing.T) {
	for _, c := range healthCases(t) {
		for _, kind := range c.kinds() {
			o := c.object(t, kind)
			if got := kstatusOf(t, o); got != c.kstatus {
				t.Errorf("%s %s=%s: kstatus is %s, want %s", kind, c.reason, c.status, got, c.kstatus)
			}
			if got, message := argoHealth(t, o); got != c.argo || message != "why" {
				t.Errorf("%s %s=%s: Argo CD shows %s (%s), want %s (why)", kind, c.reason, c.status, got, message, c.argo)
			}
		}
	}
}

// An object that the operator has not read, or not since its spec changed, is in progress,
// whatever its conditions say.
func TestToolsWaitForTheOperator(t *testing.T) {
	for _, c := range healthCases(t) {
		for _, kind := range c.kinds() {
			changed := c.object(t, kind)
			changed.SetGeneration(3)
			created := c.object(t, kind)
			delete(created.Object, "status")
			for name, o := range map[string]*unstructured.Unstructured{"changed": changed, "created": created} {
				if got, _ := argoHealth(t, o); got != "Progressing" {
					t.Errorf("a %s %s (%s): Argo CD shows %s", name, kind, c.reason, got)
				}
			}
			if got := kstatusOf(t, changed); got != status.InProgressStatus {
				t.Errorf("a changed %s (%s): kstatus is %s", kind, c.reason, got)
			}
		}
	}
}

const (
	tableBegin = "<!-- health: `make stories` writes this table -->\n"
	tableEnd   = "<!-- end of health -->\n"
)

// The table of docs/gitops.md is what the tools see.
func TestHealthTableIsUpToDate(t *testing.T) {
	const page = "../../docs/gitops.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), tableBegin)
	got, after, ends := strings.Cut(rest, tableEnd)
	if !begins || !ends {
		t.Fatal("docs/gitops.md has no place for the table")
	}
	want := healthTable(t)
	if got == want {
		return
	}
	if !*update {
		t.Fatal("the table of docs/gitops.md is out of date: run make stories")
	}
	if err := os.WriteFile(page, []byte(before+tableBegin+want+tableEnd+after), 0o600); err != nil {
		t.Fatal(err)
	}
}

// healthTable returns the reasons of each condition that the tools see alike in one row.
func healthTable(t *testing.T) string {
	t.Helper()
	condition := map[string]string{"Ready": "Ready", "Run": "Succeeded", "Decision": "Applied"}
	var rows []string
	reasons := map[string][]string{}
	for _, c := range healthCases(t) {
		o := c.object(t, c.kinds()[0])
		argo, _ := argoHealth(t, o)
		kinds := strings.Join(c.kinds(), ", ")
		row := fmt.Sprintf("| %s | `%s=%s` | %%s | %s | %s |\n", kinds, condition[c.kind], c.status, kstatusOf(t, o), argo)
		if reasons[row] == nil {
			rows = append(rows, row)
		}
		reasons[row] = append(reasons[row], "`"+c.reason+"`")
	}
	var b strings.Builder
	b.WriteString("| kind | condition | reasons | kstatus | Argo CD |\n|---|---|---|---|---|\n")
	for _, row := range rows {
		fmt.Fprintf(&b, row, strings.Join(reasons[row], ", "))
	}
	b.WriteString("| all | not read by the operator since the last change | | InProgress | Progressing |\n")
	return b.String()
}
