package runnerpod

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod/podtask"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

func TestNameOfAPod(t *testing.T) {
	long := strings.Repeat("a", 61)
	hash := func(run string) string { return "-" + task.Hash([]byte(run))[:8] }
	for name, tc := range map[string]struct {
		run     string
		attempt int32
		want    string
	}{
		"a short name":                           {"fix", 3, "fix-3"},
		"a name that just fits":                  {long, 1, long + "-1"},
		"a name that fits no more at attempt 10": {long, 10, long[:51] + hash(long) + "-10"},
		"a name that is one too long":            {long + "b", 1, long[:52] + hash(long+"b") + "-1"},
		"a name that is cut behind a point":      {long[:50] + ".-" + long[:10], 1, long[:50] + hash(long[:50]+".-"+long[:10]) + "-1"},
	} {
		if got := Name(tc.run, tc.attempt); got != tc.want || len(got) > 63 {
			t.Errorf("%s: %q (%d characters), want %q", name, got, len(got), tc.want)
		}
	}
}

// A runner that ended without a message, or with one that is no report, said nothing.
func TestTermination(t *testing.T) {
	ended := func(message string) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
			{Name: RunnerContainer, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: message}}},
		}}}
	}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want *task.Termination
	}{
		"no pod":                       {nil, nil},
		"it has not ended":             {&corev1.Pod{}, nil},
		"it left no message":           {ended(""), nil},
		"its message is no report":     {ended("fatal error: out of memory"), nil},
		"a report":                     {ended(`{"attempt":2,"result":{"reason":"Finished","message":"Done"}}`), &task.Termination{Attempt: 2, Result: task.Result{Reason: "Finished", Message: "Done"}}},
		"a report with raw characters": {ended(`{"result":{"message":"a\u202eb"}}`), &task.Termination{Result: task.Result{Message: `a\u202eb`}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Termination(tc.pod)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestSignalsOfAPod(t *testing.T) {
	for text, want := range map[string]task.Signals{"": {}, `{"stop":true}`: {Stop: true}, "no JSON": {}} {
		pod := podOf("p", "")
		pod.Annotations = map[string]string{v1alpha1.AnnotationSignals: text}
		if diff := cmp.Diff(want, SignalsIn(pod)); diff != "" {
			t.Errorf("%q -want +got:\n%s", text, diff)
		}
	}
}

// taskWith returns the task of attempt 2 of a Run with this progress.
func taskWith(p *v1alpha1.RunProgress, mods ...func(*Input)) task.Task {
	in := Input{Run: gen.Run(func(r *v1alpha1.Run) { r.Status.Progress = p }), Revision: &snapshot.Revision{RunnerHash: "h"}, Attempt: 2}
	for _, mod := range mods {
		mod(&in)
	}
	return TaskOf(in)
}

func TestTaskOfTheFirstAttempt(t *testing.T) {
	run := gen.Run(func(r *v1alpha1.Run) {
		r.Spec.User, r.Labels = "ann", map[string]string{"team": "a"}
		r.Spec.Input = &runtime.RawExtension{Raw: []byte(`{"n":1}`)}
	})
	traces := &task.Traces{Endpoint: "http://collector", Content: true, Metrics: true}
	got := TaskOf(Input{Run: run, Revision: &snapshot.Revision{RunnerHash: "h"}, Attempt: 1, Limits: task.Limits{Steps: 7}, Durable: true, Defaults: Defaults{Traces: traces}})
	want := task.Task{
		Version: task.Version, Run: task.Run{Namespace: gen.Namespace, Name: "x", UID: "run-uid"}, Attempt: 1, Prompt: "Fix it.", User: "ann",
		Labels: map[string]string{"team": "a"}, Limits: task.Limits{Steps: 7}, Durable: true, SnapshotHash: "h", Input: json.RawMessage(`{"n":1}`),
		Traces: &task.Traces{Endpoint: "http://collector", Content: true, Metrics: true, Root: "run-uid"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("task -want +got:\n%s", diff)
	}
	if traces.Root != "" {
		t.Error("the settings of the installation were changed")
	}
}

// A retry is told why the attempt before it failed, and no other attempt is told anything.
func TestWhatARetryIsTold(t *testing.T) {
	result := func(attempt int32, committed bool, message string) *v1alpha1.RunProgress {
		return &v1alpha1.RunProgress{Attempt: attempt, Result: &v1alpha1.Result{Committed: committed, Reason: "ToolFailed", Message: message}}
	}
	for name, tc := range map[string]struct {
		progress *v1alpha1.RunProgress
		want     string
	}{
		"nothing was reported":                 {nil, ""},
		"the attempt before had no result":     {&v1alpha1.RunProgress{Attempt: 1}, ""},
		"the attempt before failed":            {result(1, true, "No tests"), "ToolFailed: No tests"},
		"the attempt before gave no message":   {result(1, true, ""), "ToolFailed"},
		"the attempt before was interrupted":   {result(1, false, "No tests"), ""},
		"this attempt has reported the result": {result(2, true, "No tests"), ""},
		"the message is long":                  {result(1, true, strings.Repeat("a", 2*task.MaxMessage)), task.Cut("ToolFailed: "+strings.Repeat("a", 2*task.MaxMessage), task.MaxMessage)},
	} {
		if got := taskWith(tc.progress).Retry; got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// Another attempt continues the lists of what was refused.
func TestRefusalsAreToldToTheNextAttempt(t *testing.T) {
	refused := &v1alpha1.Refused{
		Connections: 3, ToolCalls: 2,
		Hosts: []v1alpha1.RefusedHost{{Host: "a.example", Port: 22, Reason: "NotListed", Count: 3, FirstID: "s2c1"}, {Host: "b.example", Port: 80, Count: 1}},
		Tools: []v1alpha1.DeniedTool{{Name: "shell", By: "Policy", Count: 2, FirstID: "s4c1"}},
	}
	want := &task.Refused{
		Connections: 3, ToolCalls: 2,
		Hosts: []task.RefusedHost{{Host: "a.example", Port: 22, Reason: "NotListed", Count: 3, FirstID: "s2c1"}, {Host: "b.example", Port: 80, Count: 1}},
		Tools: []task.DeniedTool{{Name: "shell", By: "Policy", Count: 2, FirstID: "s4c1"}},
	}
	if diff := cmp.Diff(want, taskWith(&v1alpha1.RunProgress{Refused: refused}).Refused); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := taskWith(&v1alpha1.RunProgress{}).Refused; got != nil {
		t.Errorf("nothing was refused, and the next attempt is told %+v", got)
	}
}

// A cost is known to the next attempt if it is known at all.
func TestTheCostOfEarlierAttempts(t *testing.T) {
	if got := taskWith(&v1alpha1.RunProgress{Usage: v1alpha1.Usage{CostMicroUSD: new(int64(7))}}).Meter.Usage; !got.Priced || got.CostMicroUSD != 7 {
		t.Errorf("a known cost: %+v", got)
	}
	if got := taskWith(&v1alpha1.RunProgress{}).Meter.Usage; got.Priced {
		t.Errorf("an unknown cost: %+v", got)
	}
}

func TestTaskProblem(t *testing.T) {
	in := Input{Run: gen.Run(), Revision: &snapshot.Revision{}, Attempt: 1}
	in.Run.Spec.Prompt = ""
	room := podtask.Max - len(ToJSON(TaskOf(in))) - len(`"prompt":"",`)
	in.Run.Spec.Prompt = strings.Repeat("a", room)
	for len(ToJSON(TaskOf(in))) < podtask.Max {
		in.Run.Spec.Prompt += "a"
	}
	in.Run.Spec.Prompt = in.Run.Spec.Prompt[:len(in.Run.Spec.Prompt)-(len(ToJSON(TaskOf(in)))-podtask.Max)]
	if got := TaskProblem(in); got != "" {
		t.Errorf("a task that just fits: %s", got)
	}
	in.Run.Spec.Prompt += "a"
	if got := TaskProblem(in); got != "The task has 49153 bytes; at most 49152 fit a pod. Shorten spec.prompt and spec.input, or move long texts into files of the workspace" {
		t.Errorf("a task that is one byte too large: %s", got)
	}
}

// Before a Run exists, its task is as long as it will be: with its UID, its hash and its own limits.
func TestFirstTaskProblem(t *testing.T) {
	limits := task.Limits{Steps: 100, Tokens: 5_000_000}
	own := &v1alpha1.Limits{Steps: new(int32(3))}
	bare := func(prompt string, l *v1alpha1.Limits) *v1alpha1.Run {
		return gen.Run(func(r *v1alpha1.Run) { r.UID, r.Spec.Prompt, r.Spec.Limits = "", prompt, l })
	}
	for name, l := range map[string]*v1alpha1.Limits{"without limits of its own": nil, "with limits of its own": own} {
		created := bare("", l)
		created.UID = "12345678-1234-1234-1234-123456789012"
		is := limits
		if l != nil {
			is.Steps = 3
		}
		size := func(prompt string) int {
			created.Spec.Prompt = prompt
			return len(ToJSON(TaskOf(Input{Run: created, Revision: &snapshot.Revision{RunnerHash: task.Hash(nil)}, Attempt: 1, Limits: is})))
		}
		prompt := strings.Repeat("a", 1+podtask.Max-size("a"))
		if got := podtask.FirstProblem(bare(prompt, l), limits); got != "" || size(prompt) != podtask.Max {
			t.Errorf("%s, a task that just fits (%d): %s", name, size(prompt), got)
		}
		reported := bare(prompt+"a", l)
		reported.Status.Progress = &v1alpha1.RunProgress{Usage: v1alpha1.Usage{InputTokens: 7}}
		if got := podtask.FirstProblem(reported, limits); !strings.HasPrefix(got, "The task has 49153 bytes") || reported.UID != "" || reported.Status.Progress == nil {
			t.Errorf("%s, a task that does not: %s", name, got)
		}
	}
}

func TestATypeWithoutJSONIsAFaultOfTheProgram(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("it is encoded")
		}
	}()
	ToJSON(math.Inf(1))
}

// Only a claim of a Run is shared, and only by a Run that another controls.
func TestWhichVolumeIsShared(t *testing.T) {
	owner := *metav1.NewControllerRef(gen.Run(func(r *v1alpha1.Run) { r.Name, r.UID = "lead", "lead-uid" }), v1alpha1.GroupVersion.WithKind("Run"))
	for name, tc := range map[string]struct {
		claim  string
		owners []metav1.OwnerReference
		want   string
	}{
		"its parent chose it":     {VolumeClaimPrefix + "lead", []metav1.OwnerReference{owner}, VolumeClaimPrefix + "lead"},
		"a user wrote it":         {VolumeClaimPrefix + "lead", nil, ""},
		"it is a claim of others": {"database", []metav1.OwnerReference{owner}, ""},
		"no claim is named":       {"", []metav1.OwnerReference{owner}, ""},
	} {
		run := gen.Run(func(r *v1alpha1.Run) {
			r.OwnerReferences, r.Annotations = tc.owners, map[string]string{v1alpha1.AnnotationVolumeClaim: tc.claim}
		})
		claim, parent := SharedVolumeClaim(run)
		if claim != tc.want || (parent != nil) != (tc.want != "") {
			t.Errorf("%s: %q of %v, want %q", name, claim, parent, tc.want)
		}
		want := run.UID
		if tc.want != "" {
			want = "lead-uid"
		}
		if got := VolumeOwner(run); got.UID != want || got.Controller == nil || !*got.Controller {
			t.Errorf("%s: the owner is %+v, want %s", name, got, want)
		}
	}
}

// What a pod is created with besides its task: only what differs from the default is written down.
func TestAnnotationsOfAPod(t *testing.T) {
	retained := func(d string) *corev1.Pod {
		return New(newInput(t, gen.Run(), gen.Agent(func(a *v1alpha1.Agent) { a.Spec.Retention.Pod = v1alpha1.Duration(d) }), gen.Objects()))
	}
	for said, want := range map[string]string{"1h": "", "2h": "2h0m0s", "0s": "0s"} {
		if got := retained(said).Annotations[v1alpha1.AnnotationRetention]; got != want {
			t.Errorf("retention.pod %s: %q, want %q", said, got, want)
		}
	}
	in := newInput(t, gen.Run(), gen.Agent(), gen.Objects())
	if text, is := New(in).Annotations[v1alpha1.AnnotationSignals]; is {
		t.Errorf("without signals: %s", text)
	}
	in.Signals = &task.Signals{Stop: true}
	if got := SignalsIn(New(in)); !got.Stop {
		t.Errorf("signals %+v", got)
	}
}

// A sandbox that must confine its commands, and cannot, does not start.
func TestARequiredConfinement(t *testing.T) {
	for _, required := range []bool{true, false} {
		pod := equipped(t, func(in *Input) { in.Revision.Snapshot.Sandbox.Required = required })
		if got := slices.Contains(container(t, pod, SandboxContainer).Command, "-required"); got != required {
			t.Errorf("required %t: %t", required, got)
		}
	}
}

func TestWhichVolumeARunMayMount(t *testing.T) {
	claim := func(owner *v1alpha1.Run) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{}
		if owner != nil {
			c.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, v1alpha1.GroupVersion.WithKind("Run"))}
		}
		return c
	}
	for name, tc := range map[string]struct {
		run   *v1alpha1.Run
		owner *v1alpha1.Run
		want  bool
	}{
		"its own":                        {gen.Run(), gen.Run(), true},
		"one of its parent":              {gen.Run(partOfRelease), parentRun(), true},
		"its own, though it shares one":  {gen.Run(partOfRelease), gen.Run(), false},
		"one of a Run that is no parent": {gen.Run(), parentRun(), false},
		"one without an owner":           {gen.Run(), nil, false},
	} {
		if got := OwnsVolume(tc.run, claim(tc.owner)); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
