package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// source returns a Run with every field that a Run of an Agent can have, which has ended, and its volume.
func source(mods ...func(*v1alpha1.Run)) (*v1alpha1.Run, *corev1.PersistentVolumeClaim) {
	run, claim := durableRun()
	steps, ttl := int32(30), int32(3600)
	run.Labels = map[string]string{"team": "blue"}
	run.Spec.User, run.Spec.Images, run.Spec.TTLSecondsAfterFinished = "ann", []string{"a.png"}, &ttl
	run.Spec.Limits = &v1alpha1.Limits{Steps: &steps}
	run.Spec.Input = &runtime.RawExtension{Raw: []byte(`{"a":1}`)}
	run.Spec.DesiredState = v1alpha1.DesiredStopped
	for _, mod := range mods {
		mod(run)
	}
	return run, claim
}

// open lets an Agent accept any input.
func open(name string) *v1alpha1.Agent {
	return gen.Agent(func(a *v1alpha1.Agent) {
		a.Name, a.ResourceVersion = name, ""
		a.Spec.Input = &v1alpha1.Input{Schema: &runtime.RawExtension{Raw: []byte(`{"type":"object"}`)}}
	})
}

// newContinued returns a session with a Run that can be continued.
func newContinued(t *testing.T, mods ...func(*v1alpha1.Run)) *session {
	t.Helper()
	run, claim := source(mods...)
	s := newSession(t, run, claim, open("open"))
	declares := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"input":{"schema":{"type":"object"}}}}`))
	if err := s.client.Patch(t.Context(), open("fixer"), declares); err != nil {
		t.Fatal(err)
	}
	return s
}

// created returns the Runs but for those of the names.
func (s *session) created(t *testing.T, but ...string) []v1alpha1.Run {
	t.Helper()
	var all v1alpha1.RunList
	if err := s.client.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	var out []v1alpha1.Run
	for _, run := range all.Items {
		if !strings.Contains(strings.Join(but, " "), run.Name) {
			out = append(out, run)
		}
	}
	return out
}

func TestContinueCopiesTheWorkAndNotWhatWasSaid(t *testing.T) {
	old, _ := source()
	step := int64(14)
	from := func(step *int64, workspace v1alpha1.ContinueWorkspace) *v1alpha1.ContinueFrom {
		return &v1alpha1.ContinueFrom{Run: "fix", UID: "uid-of-fix", Step: step, Workspace: workspace}
	}
	for line, change := range map[string]func(*v1alpha1.RunSpec){
		"continue fix -p More.":                    func(r *v1alpha1.RunSpec) { r.Prompt, r.ContinueFrom = "More.", from(nil, v1alpha1.ContinueCopy) },
		"continue run/fix More. --workspace Fresh": func(r *v1alpha1.RunSpec) { r.Prompt, r.ContinueFrom = "More.", from(nil, v1alpha1.ContinueFresh) },
		"continue fix -p - --image b.png": func(r *v1alpha1.RunSpec) {
			r.Prompt, r.Images, r.ContinueFrom = "From a pipe.", []string{"b.png"}, from(nil, v1alpha1.ContinueCopy)
		},
		"fork fix --step s14 --yes": func(r *v1alpha1.RunSpec) { r.ContinueFrom = from(&step, v1alpha1.ContinueCopy) },
		"fork fix --step 14 -y More. --agent open": func(r *v1alpha1.RunSpec) {
			r.Prompt, r.Agent, r.ContinueFrom = "More.", "open", from(&step, v1alpha1.ContinueCopy)
		},
		"continue fix More. --input a=2 --steps=20": func(r *v1alpha1.RunSpec) {
			steps := int32(20)
			r.Prompt, r.Input, r.Limits, r.ContinueFrom = "More.", &runtime.RawExtension{Raw: []byte(`{"a":2}`)}, &v1alpha1.Limits{Steps: &steps}, from(nil, v1alpha1.ContinueCopy)
		},
	} {
		s := newContinued(t)
		s.In = strings.NewReader("From a pipe.")
		if code := s.run(t, strings.Fields(line)...); code != exit.OK {
			t.Fatalf("%s: %s", line, s.text())
		}
		runs := s.created(t, "fix")
		if len(runs) != 1 {
			t.Fatalf("%s: %d Runs", line, len(runs))
		}
		want := *old.Spec.DeepCopy()
		want.Prompt, want.Images, want.DesiredState = "", nil, ""
		change(&want)
		if diff := cmp.Diff(want, runs[0].Spec); diff != "" || len(runs[0].Labels) > 0 {
			t.Errorf("%s: labels %v (-want +got):\n%s", line, runs[0].Labels, diff)
		}
		if name := runs[0].Name; !strings.HasPrefix(name, want.Agent+"-") || s.out.String() != "run.deckhand.dev/"+name+" created\n" {
			t.Errorf("%s: the name is %s, printed %s", line, name, s.text())
		}
	}
}

func TestContinueRefusesWhatCannotBeContinued(t *testing.T) {
	unended := func(r *v1alpha1.Run) {
		r.Status.CompletionTime = nil
		r.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonRunning}}
	}
	const more = "continue fix -p More."
	for name, tc := range map[string]struct {
		line string
		mod  func(*v1alpha1.Run)
		want string
	}{
		"a name that is mistyped":      {"continue fxi -p More.", nil, "run fxi not found in namespace team-a. Did you mean fix?"},
		"a Run at work":                {more, unended, "run fix has not ended (Running). To tell its agent something now: kubectl deckhand message fix TEXT -n team-a. To continue it after its end, first: kubectl wait --for=condition=Finished"},
		"a paused Run":                 {more, func(r *v1alpha1.Run) { unended(r); r.Spec.DesiredState = v1alpha1.DesiredPaused }, "let it work again with kubectl deckhand resume fix -n team-a"},
		"a Workflow":                   {more, func(r *v1alpha1.Run) { r.Spec.Agent, r.Spec.Workflow = "", "release" }, "which is retried and not continued: kubectl deckhand retry fix -n team-a. To continue one of its child Runs, which kubectl deckhand tree fix -n team-a shows, name that"},
		"a restored Run":               {more, func(r *v1alpha1.Run) { endedWith(v1alpha1.ReasonRestored)(r) }, "was restored from a backup"},
		"a Run without an attempt":     {more, func(r *v1alpha1.Run) { r.Status.Attempt = nil }, "run fix ended before it started (Finished)"},
		"a Run without a volume":       {more, func(r *v1alpha1.Run) { r.Status.Attempt.VolumeClaim = "" }, "kept no conversation and no files, because workspace.durability of Agent fixer was Pod. Set it to Volume, so that later Runs can be continued. To do the work of this one again: kubectl deckhand run --from run/fix -n team-a"},
		"a volume that was deleted":    {more, func(r *v1alpha1.Run) { r.Status.Attempt.VolumeClaim = "gone" }, "were deleted with PersistentVolumeClaim gone, after its end at 2030-01-01T12:00:00Z. To keep those of later Runs for longer, set retention.volume and retention.keepVolume of Agent fixer"},
		"the volume of an earlier Run": {more, func(r *v1alpha1.Run) { r.UID = "another" }, "were deleted with PersistentVolumeClaim deckhand-run-fix-1"},
		"a chain that is too long": {more, func(r *v1alpha1.Run) {
			r.Status.ContinuedFrom = &v1alpha1.ContinuedFrom{Runs: strings.Fields(strings.Repeat("x ", v1alpha1.MaxContinued))}
		}, "run fix has continued 20 Runs, one after the other, and a Run can continue at most 20"},
		"nothing left to do":         {"continue fix", nil, "run fix ended with reason Finished, so there is nothing left to do: say what to do next, as in kubectl deckhand continue fix -p TEXT -n team-a"},
		"nothing to do, still":       {"continue fix", func(r *v1alpha1.Run) { endedWith(v1alpha1.ReasonRejected)(r) }, "ended with reason Rejected"},
		"a right that is missing":    {more, func(r *v1alpha1.Run) { r.Labels = nil }, "you may not get runs/session in namespace team-a"},
		"no step":                    {"fork fix -p More.", nil, "say with --step which step is the last to keep"},
		"a step that is none":        {"fork fix --step s14c1 -y", nil, "--step s14c1: write the number of a step"},
		"the step 0":                 {"fork fix --step 0 -y", nil, "--step 0: write the number of a step"},
		"too many words":             {"continue fix Add a test", nil, "these are 4 words. Write the text in quotes: kubectl deckhand continue fix 'TEXT'"},
		"two prompts":                {"continue fix More. -p Less.", nil, "the prompt is given twice"},
		"other files":                {"continue fix More. --workspace fresh", nil, "--workspace fresh: write Copy, Share or Fresh"},
		"events that nobody watches": {"continue fix More. --json", nil, "add --wait"},
		"another Agent's input":      {"continue fix More. --agent poet", nil, "spec.input.a: "},
		"no such Agent":              {"continue fix More. --agent opne", nil, "agent opne not found in namespace team-a. Did you mean open?"},
	} {
		s := newContinued(t)
		if tc.mod != nil {
			s = newContinued(t, tc.mod)
		}
		if strings.HasPrefix(tc.want, "you may not") {
			s.forbidden = []string{"get runs/session"}
		}
		code := s.run(t, strings.Fields(tc.line)...)
		if runs := s.created(t, "fix"); code == exit.OK || len(runs) > 0 || !strings.Contains(s.err.String(), tc.want) {
			t.Errorf("%s: exit code %d, %d Runs were created, want %q in: %s", name, code, len(runs), tc.want, s.text())
		}
	}
}

// After a failure the agent has something to do without a new prompt.
func TestContinueAfterAFailureNeedsNoPrompt(t *testing.T) {
	s := newContinued(t, func(r *v1alpha1.Run) { endedWith(v1alpha1.ReasonStepLimit)(r) })
	if code := s.run(t, "continue", "fix"); code != exit.OK || len(s.created(t, "fix")) != 1 {
		t.Errorf("exit code %d: %s", code, s.text())
	}
}

// endHaiku lets the Run haiku of the Agent poet end, with a claim unless its name is empty.
func (s *session) endHaiku(t *testing.T, claim, keep string) {
	t.Helper()
	if claim != "" {
		durable := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"workspace":{"durability":"Volume"}}}`))
		if err := s.client.Patch(t.Context(), &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: "poet"}}, durable); err != nil {
			t.Fatal(err)
		}
	}
	s.whenWaiting(t, "haiku", func(run *v1alpha1.Run) {
		endedWith(v1alpha1.ReasonFinished)(run)
		run.Status.CompletionTime = &metav1.Time{Time: gen.Noon}
		pod := runnerPod(run, "1", corev1.PodSucceeded)
		run.Status.Attempt.VolumeClaim = claim
		_, volume := durableRun(func(c *corev1.PersistentVolumeClaim) {
			c.Name, c.Annotations[v1alpha1.AnnotationRetain] = "c", keep
			c.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(run, v1alpha1.GroupVersion.WithKind("Run"))}
		})
		for _, o := range []client.Object{pod, volume} {
			if err := s.client.Create(t.Context(), o); err != nil {
				t.Error(err)
			}
		}
		s.update(t, run)
	})
}

// A user who watches a Run reads before its work that it cannot be continued, and after it how it can.
func TestRunSaysWhetherItCanBeContinued(t *testing.T) {
	const cannot, can = "This Run cannot be continued after its end: Agent poet has workspace.durability Pod", "To continue it, until 2030-01-02T12:00:00Z: kubectl deckhand continue haiku -p TEXT -n team-a"
	for name, tc := range map[string]struct {
		claim string
		keep  string
		args  []string
		want  [2]bool
	}{
		"a volume":                      {"c", "Always", []string{"-w"}, [2]bool{false, true}},
		"a volume that is kept no more": {"c", "OnFailure", []string{"-w"}, [2]bool{false, false}},
		"no volume":                     {"", "", []string{"-w"}, [2]bool{true, false}},
		"no volume, and nobody watches": {"", "", nil, [2]bool{false, false}},
	} {
		s := newSession(t)
		s.openLog = (&fakeLogs{streams: map[string][]fakeStream{"haiku-1": {{lines: textEvent(1, 1, "Harbor lamps")}}}}).open
		s.endHaiku(t, tc.claim, tc.keep)
		if code := s.run(t, append([]string{"run", "poet", "-p", "Work.", "--name=haiku"}, tc.args...)...); code != exit.OK {
			t.Fatalf("%s: exit code %d: %s", name, code, s.text())
		}
		if got := [2]bool{strings.Contains(s.err.String(), cannot), strings.Contains(s.err.String(), can)}; got != tc.want {
			t.Errorf("%s: printed %s", name, s.err.String())
		}
	}
}

func TestContinueShowsTheNewRun(t *testing.T) {
	s := newContinued(t)
	s.openLog = (&fakeLogs{streams: map[string][]fakeStream{"haiku-1": {{lines: textEvent(1, 1, "Harbor lamps")}}}}).open
	s.endHaiku(t, "c", "Always")
	code := s.run(t, "continue", "fix", "Write.", "--name=haiku", "--agent=open", "--wait")
	if code != exit.OK || s.out.String() != "● Harbor lamps\n" || strings.Contains(s.err.String(), "continues fix") || !strings.Contains(s.err.String(), "kubectl deckhand continue haiku -p TEXT") {
		t.Errorf("exit code %d: %s", code, s.text())
	}
	s = newContinued(t)
	s.forbidden = []string{"get pods/log"}
	if code := s.run(t, "continue", "fix", "Write.", "--wait"); code != exit.Error || len(s.created(t, "fix")) > 0 {
		t.Errorf("without the right to watch: exit code %d: %s", code, s.text())
	}
}

// The volume of a child Run that shares its files is kept as long as that of its parent.
func TestVolumesThatAreKept(t *testing.T) {
	parent := namedRun("ship", v1alpha1.ReasonFinished)
	shares := func(r *v1alpha1.Run) {
		r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(parent, v1alpha1.GroupVersion.WithKind("Run"))}
		r.Annotations = map[string]string{v1alpha1.AnnotationVolumeClaim: "deckhand-run-fix-1"}
	}
	ofParent := func(c *corev1.PersistentVolumeClaim) {
		c.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(parent, v1alpha1.GroupVersion.WithKind("Run"))}
	}
	none := func(*v1alpha1.Run) {}
	works, later := namedRun("works", v1alpha1.ReasonRunning), namedRun("later", v1alpha1.ReasonFinished)
	works.UID, works.Status.CompletionTime, later.UID = "uid-works", nil, "uid-later"
	later.Status.CompletionTime = &metav1.Time{Time: gen.Noon.Add(time.Hour)}
	joinedBy := func(runs ...*v1alpha1.Run) func(*corev1.PersistentVolumeClaim) {
		return func(c *corev1.PersistentVolumeClaim) {
			for _, r := range runs {
				c.OwnerReferences = append(c.OwnerReferences, metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Run", Name: r.Name, UID: r.UID})
			}
		}
	}
	sharesFiles := func(r *v1alpha1.Run) {
		r.Spec.ContinueFrom = &v1alpha1.ContinueFrom{Run: "gone", Workspace: v1alpha1.ContinueShare}
		r.Status.ContinuedFrom = &v1alpha1.ContinuedFrom{Runs: []string{"gone"}, VolumeClaim: r.Status.Attempt.VolumeClaim}
	}
	c := newSession(t, works, later).client
	for name, tc := range map[string]struct {
		run   func(*v1alpha1.Run)
		claim func(*corev1.PersistentVolumeClaim)
		want  string
	}{
		"its own":                   {none, func(*corev1.PersistentVolumeClaim) {}, "2030-01-02T12:00:00Z"},
		"of its parent":             {shares, ofParent, "as that of ship"},
		"of another Run":            {none, ofParent, ""},
		"expired":                   {none, func(c *corev1.PersistentVolumeClaim) { c.Annotations[v1alpha1.AnnotationRetention] = "1h0m0s" }, ""},
		"being deleted":             {none, func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{Time: gen.Noon} }, ""},
		"of a Run that ended later": {none, joinedBy(later), "2030-01-02T13:00:00Z"},
		"of a Run that works":       {none, joinedBy(later, works), "after the end of works"},
		"of a Run that was deleted": {sharesFiles, func(c *corev1.PersistentVolumeClaim) { c.OwnerReferences[0].Controller = nil }, "2030-01-02T12:00:00Z"},
		"of a Workflow":             {func(r *v1alpha1.Run) { r.Spec.Workflow = "w" }, func(*corev1.PersistentVolumeClaim) {}, ""},
	} {
		run, claim := durableRun(tc.claim)
		tc.run(run)
		got := ""
		kept, can, err := keptVolumeOf(t.Context(), c, run, claim, gen.Noon.Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		if can {
			got = kept.text()
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// The default of the chart is in the condition, which counts for Agents that say nothing.
func TestDurabilityOfAnAgentThatSaysNothing(t *testing.T) {
	for reason, want := range map[string]bool{v1alpha1.ReasonPodDurability: true, v1alpha1.ReasonVolumeDurability: false, "": false} {
		a := gen.Agent(func(a *v1alpha1.Agent) {
			a.Spec.Workspace.Durability = ""
			if reason != "" {
				a.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionDurable, Reason: reason}}
			}
		})
		if got := cannotBeContinued(a) != ""; got != want {
			t.Errorf("%q: %t", reason, got)
		}
		a.Spec.Workspace.Durability = v1alpha1.DurabilityVolume
		if cannotBeContinued(a) != "" {
			t.Errorf("%q: the Agent has a volume", reason)
		}
	}
}

func TestListOfRunsThatCanBeContinued(t *testing.T) {
	run, claim := source(used(4, 7000, 375, 23_625))
	ended := run.Status.CompletionTime
	withPod := namedRun("pod", v1alpha1.ReasonFinished, finished, func(r *v1alpha1.Run) { r.Status.CompletionTime, r.Status.Attempt = ended, &v1alpha1.Attempt{Number: 1} })
	kept := func(name string, keep string) (client.Object, client.Object) {
		r := namedRun(name, v1alpha1.ReasonStuck, endedWith(v1alpha1.ReasonStuck), func(r *v1alpha1.Run) {
			r.Status.CompletionTime, r.Status.Attempt = ended, &v1alpha1.Attempt{Number: 1, VolumeClaim: name}
			r.Status.Conditions[0].Status = metav1.ConditionFalse
		})
		_, c := durableRun(func(c *corev1.PersistentVolumeClaim) {
			c.Name, c.Annotations[v1alpha1.AnnotationRetain] = name, keep
			c.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(r, v1alpha1.GroupVersion.WithKind("Run"))}
		})
		return r, c
	}
	failed, itsClaim := kept("stuck", "OnFailure")
	never, released := kept("never", "Never")
	active := namedRun("active", v1alpha1.ReasonRunning, func(r *v1alpha1.Run) { r.Status.Attempt = &v1alpha1.Attempt{Number: 1, VolumeClaim: "c"} })
	s := newSession(t, run, claim, withPod, failed, itsClaim, never, released, active)
	if code := s.run(t, "list", "--continuable"); code != exit.OK {
		t.Fatal(s.text())
	}
	golden(t, "list-continuable.txt", s.text())
	for line, want := range map[string]string{
		"list --continuable --state succeeded,finished -o name": "run.deckhand.dev/fix\n",
		"list --continuable -A --state stuck":                   "NAMESPACE   NAME    TARGET   STATE   STEPS   TOKENS   COST   KEPT-UNTIL             AGE\nteam-a      stuck   fixer    Stuck   0       0               2030-01-02T12:00:00Z   60m\n",
		"list --continuable --agent poet":                       "No Runs found that can be continued. A Run keeps",
		"list --continuable --agent poet -o json":               `"items": []`,
	} {
		if code := s.run(t, strings.Fields(line)...); code != exit.OK || !strings.HasPrefix(s.text(), want) && !strings.Contains(s.out.String(), want) {
			t.Errorf("%s: exit code %d, printed %s", line, code, s.text())
		}
	}
	if code := s.run(t, "list", "--continuable", "-w"); code != exit.Usage {
		t.Errorf("exit code %d: %s", code, s.text())
	}
}

// continued returns a Run that continues two others.
func continued(mods ...func(*v1alpha1.Run)) *v1alpha1.Run {
	cost, step := int64(420_000), int64(14)
	return namedRun("fix-2", v1alpha1.ReasonFinished, append([]func(*v1alpha1.Run){endedWith(v1alpha1.ReasonFinished), used(4, 7000, 375, 23_625), func(r *v1alpha1.Run) {
		r.CreationTimestamp, r.Status.CompletionTime = metav1.NewTime(gen.Noon), &metav1.Time{Time: gen.Noon.Add(time.Minute)}
		r.Spec.ContinueFrom = &v1alpha1.ContinueFrom{Run: "fix-1", Step: &step}
		r.Status.ContinuedFrom = &v1alpha1.ContinuedFrom{Runs: []string{"fix-1", "fix-0"}, UID: "u", TotalTokens: 12_300, Cost: "0.42USD", CostMicroUSD: &cost}
	}}, mods...)...)
}

func TestCommandsShowWhatARunContinues(t *testing.T) {
	unpriced := func(r *v1alpha1.Run) { r.Status.ContinuedFrom.CostMicroUSD, r.Status.ContinuedFrom.Cost = nil, "" }
	waiting := func(r *v1alpha1.Run) { r.Status.ContinuedFrom, r.Spec.ContinueFrom.Step = nil, nil }
	for name, tc := range map[string]struct {
		line string
		mods []func(*v1alpha1.Run)
		want string
	}{
		"why":            {"why fix-2", nil, "  Target:    fixer\n  Continues: fix-1 up to step 14, fix-0 (12300 tokens, 0.42USD before it)\n"},
		"why, unpriced":  {"why fix-2", []func(*v1alpha1.Run){unpriced}, "  Continues: fix-1 up to step 14, fix-0 (12300 tokens before it)\n"},
		"why, not begun": {"why fix-2", []func(*v1alpha1.Run){waiting}, "  Continues: fix-1\n"},
		"tree":           {"tree fix-2", nil, "Continues fix-1 up to step 14, fix-0 (12300 tokens, 0.42USD before it)\nNAME    RUN     STATE"},
		"tree as JSON":   {"tree fix-2 -o json", nil, `"continuedFrom": {`},
		"logs":           {"logs fix-2", nil, "Run fix-2 continues fix-1 up to step 14, fix-0 (12300 tokens, 0.42USD before it). The conversation before it: kubectl deckhand logs fix-1 -n team-a\n"},
		"cost":           {"cost fix-2", nil, "RUN                TOKENS   COST\nfix-2              7375     0.023625USD\n2 Runs before it   12300    0.42USD\ntotal              19675    0.443625USD\nIt continues fix-1 up to step 14"},
		"cost, unpriced": {"cost fix-2", []func(*v1alpha1.Run){unpriced}, "total              19675\nIt continues fix-1 up to step 14, fix-0 (12300 tokens before it)\nThe cost is missing, because"},
		"cost alone":     {"cost fix-2", []func(*v1alpha1.Run){waiting}, "RUN     TOKENS   COST\nfix-2   7375     0.023625USD\n"},
		"cost as JSON":   {"cost fix-2 -o json", nil, "\"total\": {\n        \"tokens\": 19675,\n        \"costMicroUSD\": 443625\n    }"},
	} {
		run := continued(tc.mods...)
		pod := runnerPod(run, "1", corev1.PodSucceeded)
		s := newSession(t, run, pod)
		s.openLog = (&fakeLogs{streams: map[string][]fakeStream{"fix-2-1": {{lines: textEvent(1, 1, "Done.")}, {lines: ""}}}}).open
		if code := s.run(t, strings.Fields(tc.line)...); code != exit.OK || !strings.Contains(s.text(), tc.want) {
			t.Errorf("%s: exit code %d, want %q in:\n%s", name, code, tc.want, s.text())
		}
	}
	s := newSession(t, continued())
	if code := s.run(t, "cost", "fix-2", "--by", "model"); code != exit.Usage {
		t.Errorf("exit code %d: %s", code, s.text())
	}
}
