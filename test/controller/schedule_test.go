package controller_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/controller/schedule"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
)

// A scheduleFixture is a Schedule with its operator, on a real API server.
type scheduleFixture struct {
	*apitest.Server
	t         *testing.T
	namespace string
	operator  client.WithWatch // with the operator's own rights
	faults    interceptor.Funcs
	events    *events.FakeRecorder
	now       time.Time
	name      string
}

// newScheduleFixture makes a Schedule of each quarter of an hour, and sets the clock to
// right after one of them that came after its creation.
func newScheduleFixture(t *testing.T, mods ...func(*v1alpha1.Schedule)) *scheduleFixture {
	t.Helper()
	s := &scheduleFixture{Server: apitest.Get(t), t: t, events: events.NewFakeRecorder(100), name: "audit"}
	s.namespace = s.Namespace(t)
	s.operator = operatorClient(t, s.Server)
	made := &v1alpha1.Schedule{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.namespace, Name: s.name,
			Labels:      map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps", "app.kubernetes.io/instance": "apps"},
			Annotations: map[string]string{"argocd.argoproj.io/tracking-id": "apps"},
		},
		Spec: v1alpha1.ScheduleSpec{
			Schedule: "*/15 * * * *",
			RunTemplate: v1alpha1.RunTemplate{
				Labels: map[string]string{"team": "harbor", "app.kubernetes.io/instance": "apps"},
				Spec:   v1alpha1.RunSpec{Agent: "nobody-yet", Prompt: "Audit it."},
			},
		},
	}
	for _, mod := range mods {
		mod(made)
	}
	s.Create(t, made)
	s.now = s.get().CreationTimestamp.UTC()
	s.reconcileUntilStable()
	s.now = s.get().Status.NextScheduleTime.UTC()
	return s
}

func (s *scheduleFixture) get() *v1alpha1.Schedule {
	s.t.Helper()
	var out v1alpha1.Schedule
	if err := s.Admin.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: s.name}, &out); err != nil {
		s.t.Fatalf("getting the Schedule: %v", err)
	}
	return &out
}

// reconcileCopy calls the controller once with a copy of the Schedule, which may be old.
func (s *scheduleFixture) reconcileCopy(c *v1alpha1.Schedule) (time.Duration, error) {
	s.t.Helper()
	r := schedule.New(interceptor.NewClient(s.operator, s.faults), s.operator, s.events, func() time.Time { return s.now })
	result, err := r.Reconcile(s.t.Context(), c)
	return result.RequeueAfter, err
}

// reconcileUntilStable reconciles until the Schedule no longer changes, and returns when it is due again.
func (s *scheduleFixture) reconcileUntilStable() time.Duration {
	s.t.Helper()
	for range 10 {
		before := s.get()
		wake, err := s.reconcileCopy(before)
		if err != nil {
			s.t.Fatalf("reconciling: %v", err)
		}
		if s.get().ResourceVersion == before.ResourceVersion {
			return wake
		}
	}
	s.t.Fatal("the Schedule does not come to rest")
	return 0
}

// runs are those that there are, in the order of their names.
func (s *scheduleFixture) runs() []v1alpha1.Run {
	s.t.Helper()
	var list v1alpha1.RunList
	if err := s.Admin.List(s.t.Context(), &list, client.InNamespace(s.namespace)); err != nil {
		s.t.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.Run) int { return strings.Compare(a.Name, b.Name) })
	return list.Items
}

// ends gives a Run its outcome.
func (s *scheduleFixture) ends(run *v1alpha1.Run, status metav1.ConditionStatus) {
	s.t.Helper()
	run = run.DeepCopy()
	at := metav1.NewTime(s.now)
	run.Status.CompletionTime = &at
	for i := range run.Status.Conditions {
		if c := &run.Status.Conditions[i]; c.Type == v1alpha1.ConditionSucceeded {
			c.Status, c.Reason = status, map[metav1.ConditionStatus]string{metav1.ConditionTrue: "Finished", metav1.ConditionFalse: "Stopped"}[status]
		}
	}
	if err := s.Admin.Status().Update(s.t.Context(), run); err != nil {
		s.t.Fatalf("ending Run %s: %v", run.Name, err)
	}
}

// newEvents are the events since the last call.
func (s *scheduleFixture) newEvents() string {
	var out []string
	for len(s.events.Events) > 0 {
		out = append(out, <-s.events.Events)
	}
	return strings.Join(out, "\n")
}

func policyOf(p v1alpha1.ConcurrencyPolicy) func(*v1alpha1.Schedule) {
	return func(s *v1alpha1.Schedule) { s.Spec.ConcurrencyPolicy = p }
}

func TestAScheduleMakesARun(t *testing.T) {
	s := newScheduleFixture(t)
	if wake := s.reconcileUntilStable(); wake != time.Minute { // its Agent does not exist
		t.Errorf("it wakes after %s", wake)
	}
	runs := s.runs()
	if len(runs) != 1 {
		t.Fatalf("there are %d Runs", len(runs))
	}
	r, made := runs[0], s.get()
	if !metav1.IsControlledBy(&r, made) || r.Annotations[v1alpha1.AnnotationScheduledAt] != s.now.Format(time.RFC3339) || r.Spec.Agent != "nobody-yet" {
		t.Errorf("the Run is %+v of %+v", r.ObjectMeta, r.Spec)
	}
	if len(r.Labels) != 2 || r.Labels["team"] != "harbor" || r.Labels[v1alpha1.LabelSchedule] != "audit" || len(r.Annotations) != 1 {
		t.Errorf("it carries %v and %v", r.Labels, r.Annotations)
	}
	if st := made.Status; !st.LastScheduleTime.Time.Equal(s.now) || !st.NextScheduleTime.Time.Equal(s.now.Add(15*time.Minute)) || st.Active != 1 || st.Missed != 0 {
		t.Errorf("the status is %+v", st)
	}
	if told := s.newEvents(); !strings.HasPrefix(told, "Normal RunCreated Run "+r.Name+" is for") {
		t.Errorf("people are told %q", told)
	}
	s.ends(&r, metav1.ConditionTrue)
	s.reconcileUntilStable()
	if st := s.get().Status; st.Active != 0 || st.LastSuccessfulTime == nil {
		t.Errorf("after the Run the status is %+v", st)
	}
}

// Between creating a Run and updating the status the operator may die; the next finds it.
func TestACrashBetweenCreateAndStatusUpdate(t *testing.T) {
	s := newScheduleFixture(t)
	died := errors.New("the operator died")
	s.faults.SubResourcePatch = func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
		return died
	}
	if _, err := s.reconcileCopy(s.get()); !errors.Is(err, died) {
		t.Fatalf("reconciling: %v", err)
	}
	s.faults.SubResourcePatch = nil
	// The cache of the next shows no Run yet.
	s.faults.List = func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return nil }
	s.reconcileUntilStable()
	s.faults.List = nil
	s.reconcileUntilStable()
	if runs, st := s.runs(), s.get().Status; len(runs) != 1 || st.Missed != 0 || !st.LastScheduleTime.Time.Equal(s.now) || st.Active != 1 {
		t.Errorf("there are %d Runs, and the status is %+v", len(runs), st)
	}
}

// By what a Schedule was, a Run that has come and gone is not made again.
func TestAnOldCopyMakesNothing(t *testing.T) {
	s := newScheduleFixture(t)
	old := s.get()
	s.reconcileUntilStable()
	if err := s.Admin.Delete(t.Context(), &s.runs()[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := s.reconcileCopy(old); err == nil {
		t.Error("it takes an old copy for the last word")
	}
	if runs := s.runs(); len(runs) != 0 {
		t.Errorf("it made %s again", runs[0].Name)
	}
}

// A Run that the cache does not show yet is active all the same.
func TestForbidWithALateCache(t *testing.T) {
	s := newScheduleFixture(t)
	s.reconcileUntilStable()
	s.now = s.now.Add(15 * time.Minute)
	s.faults.List = func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return nil }
	s.reconcileUntilStable()
	if runs, st := s.runs(), s.get().Status; len(runs) != 1 || st.Missed != 1 || !st.LastMissedTime.Time.Equal(s.now) {
		t.Errorf("there are %d Runs, and the status is %+v", len(runs), st)
	}
	if told := s.newEvents(); !strings.Contains(told, "is still active, and spec.concurrencyPolicy is Forbid") {
		t.Errorf("people are told %q", told)
	}
}

func TestReplaceStopsWhatIsActive(t *testing.T) {
	s := newScheduleFixture(t, policyOf(v1alpha1.ConcurrencyReplace))
	s.reconcileUntilStable()
	s.now = s.now.Add(15 * time.Minute)
	s.reconcileUntilStable()
	runs := s.runs()
	if len(runs) != 1 || runs[0].Spec.DesiredState != v1alpha1.DesiredStopped {
		t.Fatalf("there are %d Runs, the first is to be %s", len(runs), runs[0].Spec.DesiredState)
	}
	s.now = s.now.Add(20 * time.Second)
	s.ends(&runs[0], metav1.ConditionFalse)
	s.reconcileUntilStable()
	if runs := s.runs(); len(runs) != 2 || runs[1].Spec.DesiredState != v1alpha1.DesiredRunning || s.get().Status.Missed != 0 {
		t.Errorf("there are %d Runs, and the status is %+v", len(runs), s.get().Status)
	}
}

func TestFinishedRunsGo(t *testing.T) {
	none, one := int32(0), int32(1)
	s := newScheduleFixture(t, func(s *v1alpha1.Schedule) {
		s.Spec.SuccessfulRunsHistoryLimit, s.Spec.FailedRunsHistoryLimit = &one, &none
	})
	var want []string
	for _, status := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionTrue} {
		s.reconcileUntilStable()
		runs := s.runs()
		last := runs[len(runs)-1]
		s.ends(&last, status)
		want = []string{last.Name}
		s.reconcileUntilStable()
		s.now = s.now.Add(15 * time.Minute)
	}
	s.reconcileUntilStable()
	var got []string
	for _, r := range s.runs() {
		got = append(got, r.Name)
	}
	if len(got) != 2 || got[0] != want[0] {
		t.Errorf("there are %v, want %v and the one that works", got, want)
	}
}

// A Run of that name which the Schedule did not make is left alone, and told.
func TestANamesake(t *testing.T) {
	s := newScheduleFixture(t)
	name := "audit-" + strconv.FormatInt(s.now.Unix()/60, 10)
	s.Create(t, &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}, Spec: v1alpha1.RunSpec{Agent: "other", Prompt: "Other."}})
	s.reconcileUntilStable()
	if st := s.get().Status; st.Missed != 1 || st.LastScheduleTime != nil || st.Active != 0 {
		t.Errorf("the status is %+v", st)
	}
	if told := s.newEvents(); !strings.Contains(told, "Warning RunMissed No Run for") || !strings.Contains(told, "the name "+name+" is used by a Run that this Schedule did not create") {
		t.Errorf("people are told %q", told)
	}
	if runs := s.runs(); len(runs) != 1 || runs[0].Spec.Agent != "other" {
		t.Errorf("there are %d Runs", len(runs))
	}
}

// What the cluster refuses is tried again while it may be, and then told.
func TestARefusedRun(t *testing.T) {
	s := newScheduleFixture(t)
	refuse := func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		o.(*v1alpha1.Run).Spec.Agent = "" // as a policy or a quota would
		return c.Create(ctx, o, opts...)
	}
	s.faults.Create = refuse
	if wake := s.reconcileUntilStable(); wake != 30*time.Second {
		t.Errorf("it tries again after %s", wake)
	}
	ready := s.get().Status.Conditions[0]
	if !strings.Contains(ready.Message, "Creating Run audit-") || s.get().Status.Missed != 0 {
		t.Errorf("Ready says %q, and the status is %+v", ready.Message, s.get().Status)
	}
	s.now = s.now.Add(2 * time.Minute)
	s.faults.Create = nil
	s.reconcileUntilStable()
	if runs := s.runs(); len(runs) != 1 || strings.Contains(s.get().Status.Conditions[0].Message, "refused") {
		t.Errorf("there are %d Runs", len(runs))
	}
	s.ends(&s.runs()[0], metav1.ConditionTrue)
	s.faults.Create = refuse
	s.now = s.now.Add(13 * time.Minute)
	s.reconcileUntilStable()
	s.now = s.now.Add(10*time.Minute + time.Second)
	s.reconcileUntilStable()
	if st := s.get().Status; st.Missed != 1 || len(s.runs()) != 1 {
		t.Errorf("after the deadline the status is %+v", st)
	}
}

// An object quota is a refusal like another.
func TestAQuotaOfRuns(t *testing.T) {
	s := newScheduleFixture(t)
	none := corev1.ResourceList{"count/runs.deckhand.dev": resource.MustParse("0")}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "runs"}, Spec: corev1.ResourceQuotaSpec{Hard: none}}
	s.Create(t, quota)
	quota.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none} // as its controller would
	if err := s.Admin.Status().Update(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	s.reconcileUntilStable()
	if ready := s.get().Status.Conditions[0]; !strings.Contains(ready.Message, "exceeded quota: runs") || len(s.runs()) != 0 {
		t.Errorf("Ready says %q", ready.Message)
	}
}

func TestAScheduleThatIsNone(t *testing.T) {
	for name, tc := range map[string]struct {
		mod  func(*v1alpha1.Schedule)
		want string
	}{
		"its times": {func(s *v1alpha1.Schedule) { s.Spec.Schedule = "0 25 * * *" }, "end of range (25) above maximum (23)"},
		"its zone":  {func(s *v1alpha1.Schedule) { s.Spec.TimeZone = "Europe/Berln" }, "write the name of a time zone: Europe/Berlin"},
		"no time":   {func(s *v1alpha1.Schedule) { s.Spec.Schedule = "0 0 30 2 *" }, "names no time within 5 years"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scheduleFixture{Server: apitest.Get(t), t: t, events: events.NewFakeRecorder(100), name: "audit", now: time.Now()}
			s.namespace, s.operator = s.Namespace(t), operatorClient(t, apitest.Get(t))
			made := &v1alpha1.Schedule{
				ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.name},
				Spec:       v1alpha1.ScheduleSpec{Schedule: "@daily", RunTemplate: v1alpha1.RunTemplate{Spec: v1alpha1.RunSpec{Agent: "a", Prompt: "Do it."}}},
			}
			tc.mod(made)
			s.Create(t, made)
			wake := s.reconcileUntilStable()
			st := s.get().Status
			c := st.Conditions[0]
			if c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonInvalid || !strings.Contains(c.Message, tc.want) || st.NextScheduleTime != nil || wake != 0 {
				t.Errorf("it is %s %s: %s, and wakes after %s", c.Status, c.Reason, c.Message, wake)
			}
		})
	}
}
