package schedule

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// pick is one of some.
func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// arbitrary is some Schedule.
func arbitrary(r *rand.Rand) *v1alpha1.Schedule {
	return nightly(func(s *v1alpha1.Schedule) {
		s.Spec.Schedule = pick(r, "*/5 * * * *", "0 * * * *", "7,9 * * * *", "@daily", "*/20 1-3 * * *")
		s.Spec.TimeZone = pick(r, "", "Europe/Berlin", "America/Havana")
		s.Spec.ConcurrencyPolicy = pick(r, v1alpha1.ConcurrencyAllow, v1alpha1.ConcurrencyForbid, v1alpha1.ConcurrencyReplace)
		s.Spec.StartingDeadline = pick[v1alpha1.Duration](r, "10s", "10m", "2h")
		*s.Spec.SuccessfulRunsHistoryLimit = pick[int32](r, 0, 1, 3)
		*s.Spec.FailedRunsHistoryLimit = pick[int32](r, 0, 2)
		if jitter := pick[v1alpha1.Duration](r, "", "30s", "1h"); jitter != "" {
			s.Spec.Jitter = &jitter
		}
		s.CreationTimestamp = metav1.Date(2030, pick(r, time.January, time.March, time.October), pick(r, 10, 26), 20, r.IntN(60), r.IntN(60), 0, time.UTC)
	})
}

// disturb lets something happen.
func disturb(c *cluster, r *rand.Rand) {
	switch r.IntN(6) {
	case 0, 1:
		succeeds(c)
	case 2:
		fails(c)
	case 3: // the operator dies between what it does and what it says
		c.apply(decide(c.observe()))
	case 4:
		c.away = !c.away
	case 5:
		c.now = c.now.Add(-time.Duration(r.IntN(40)) * time.Minute)
	}
}

// Whatever happens: no Run is made twice, none works beside another unless it
// may, none that works is deleted, and each time is made or told.
func TestWhateverHappens(t *testing.T) {
	for seed := range gen.Seeds(100) {
		r := rand.New(rand.NewPCG(seed, 5))
		c := newCluster(arbitrary(r))
		c.step()
		latest := c.now
		for range 60 {
			c.until(c.now.Add(time.Duration(r.IntN(7200)) * time.Second))
			if c.now.After(latest) {
				latest = c.now
			}
			disturb(c, r)
			if !c.away {
				c.step()
			}
			if problem := violation(c); problem != "" {
				t.Fatalf("seed %d: %s\n%s", seed, problem, strings.Join(c.log, "\n"))
			}
		}
		c.now, c.away = latest, false
		for range 5 {
			c.step()
		}
		if problem := unaccounted(c); problem != "" {
			t.Fatalf("seed %d: %s\n%s", seed, problem, strings.Join(c.log, "\n"))
		}
	}
}

func violation(c *cluster) string {
	active := 0
	for name, n := range c.made {
		if n > 1 {
			return fmt.Sprintf("%s was made %d times", name, n)
		}
		if run := c.of(name); run != nil && run.Status.CompletionTime == nil {
			active++
		}
	}
	if active > 1 && c.schedule.Spec.ConcurrencyPolicy != v1alpha1.ConcurrencyAllow {
		return fmt.Sprintf("%d Runs work at once", active)
	}
	return ""
}

// unaccounted says which times were neither made nor counted as missed, and what
// is kept that should not be.
func unaccounted(c *cluster) string {
	o := c.observe()
	s := c.schedule.Status
	times := int64(o.calendar.Count(c.schedule.CreationTimestamp.Time, s.Internal.HandledTime.Time, 1<<20))
	made := int64(0)
	for name := range c.made {
		if name <= nameOf(c.schedule.Name, s.Internal.HandledTime.Time) {
			made++
		}
	}
	if made+s.Missed != times && s.Missed < maxCounted {
		return fmt.Sprintf("of %d times %d were made and %d missed", times, made, s.Missed)
	}
	if left := surplusRuns(o); len(left) > 0 {
		return fmt.Sprintf("%d finished Runs are left over", len(left))
	}
	return ""
}

// A second look at the same says and does nothing.
func TestEveryScheduleSettles(t *testing.T) {
	for seed := range gen.Seeds(100) {
		r := rand.New(rand.NewPCG(seed, 7))
		c := newCluster(arbitrary(r))
		c.step()
		for range 20 {
			c.until(c.now.Add(time.Duration(r.IntN(7200)) * time.Second))
			c.step()
			c.step()
			o := c.observe()
			p := decide(o)
			if p.create != nil || len(p.prune)+len(p.notices)+len(p.stop) > 0 {
				t.Fatalf("seed %d: it does %+v", seed, p)
			}
			if diff := cmp.Diff(o.schedule.Status, statusOf(o, p)); diff != "" {
				t.Fatalf("seed %d: it moves:\n%s", seed, diff)
			}
		}
	}
}

// The time that a Schedule wakes at is that of its next Run, to the moment, and
// an hour away at most.
func TestItWakesToTheMoment(t *testing.T) {
	cases := map[string]struct {
		now  time.Time
		want time.Duration
	}{
		"right before": {gen.Noon.Add(59*time.Minute + 59*time.Second + 999*time.Millisecond), time.Millisecond},
		"in between":   {gen.Noon.Add(20*time.Minute + 30*time.Second + time.Microsecond), 39*time.Minute + 30*time.Second - time.Microsecond},
		"a day before": {gen.Noon.Add(-24 * time.Hour), time.Hour},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(nightly(every("0 13 * * *")))
			c.now = tc.now
			o := c.observe()
			if got := wakeAfter(o, decide(o)); got != tc.want {
				t.Errorf("it wakes after %s, want %s", got, tc.want)
			}
		})
	}
}

// Many Schedules at one hour are spread over it, each of them always alike.
func TestJitter(t *testing.T) {
	hour := v1alpha1.Duration("1h")
	minutes := map[int]bool{}
	for i := range 600 {
		o := state{schedule: nightly(func(s *v1alpha1.Schedule) {
			s.UID, s.Spec.Jitter = types.UID(fmt.Sprint("schedule-", i)), &hour
		})}
		if o.offset() < 0 || o.offset() > time.Hour || o.offset()%time.Second != 0 {
			t.Fatalf("it is put off by %s", o.offset())
		}
		minutes[int(o.offset()/time.Minute)] = true
	}
	if len(minutes) < 58 {
		t.Errorf("600 Schedules are spread over %d minutes of 60", len(minutes))
	}
}

// What a Schedule costs each time that it is looked at, after years.
func BenchmarkDecide(b *testing.B) {
	c := newCluster(nightly(every("* * * * *")))
	c.now = gen.Noon.AddDate(10, 0, 0)
	o := c.observe()
	for b.Loop() {
		decide(o)
	}
}

// A Run that a backup brought back says that a Schedule made it, and is none of
// its Runs.
func TestWhoseRunsAreItsOwn(t *testing.T) {
	s := nightly()
	for name, tc := range map[string]struct {
		mod  func(*v1alpha1.Run)
		want bool
	}{
		"the one that it makes":         {func(*v1alpha1.Run) {}, true},
		"one of another of its name":    {func(r *v1alpha1.Run) { r.OwnerReferences[0].UID = "another" }, false},
		"one that it does not control":  {func(r *v1alpha1.Run) { r.OwnerReferences[0].Controller = nil }, false},
		"one that only bears the label": {func(r *v1alpha1.Run) { r.OwnerReferences = nil }, false},
		"one that a backup restored":    {func(r *v1alpha1.Run) { r.Labels["velero.io/restore-name"] = "backup" }, false},
	} {
		run := runOf(s, gen.Noon)
		tc.mod(run)
		if got := isOwned(s, run); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// What a Schedule says of its Runs is theirs alone to change.
func TestRunsShareNothingWithTheirSchedule(t *testing.T) {
	s := nightly(func(s *v1alpha1.Schedule) {
		s.Labels = map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps"}
		s.Spec.RunTemplate.Labels = map[string]string{"team": "harbor", "helm.toolkit.fluxcd.io/name": "apps", "deckhand.dev/workflow-node": "forged"}
	})
	run := runOf(s, gen.Noon)
	if want := map[string]string{"team": "harbor", v1alpha1.LabelSchedule: "audit"}; !cmp.Equal(run.Labels, want) {
		t.Errorf("its labels are %v, want %v", run.Labels, want)
	}
	if len(s.Spec.RunTemplate.Labels) != 3 || run.Name != "audit-31558320" || run.Spec.Prompt != "Audit it." {
		t.Errorf("the Run is %s, and its Schedule %+v", run.Name, s.Spec.RunTemplate)
	}
}
