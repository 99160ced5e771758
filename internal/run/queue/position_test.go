package queue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

func TestWhereARunStandsInTheQueue(t *testing.T) {
	minute := func(n int) time.Time { return gen.Noon.Add(time.Duration(n) * time.Minute) }
	has := func(uid types.UID, above ...types.UID) Entry {
		return Entry{UID: uid, Name: string(uid), State: Started, Ancestors: above}
	}
	waits := func(uid types.UID, at int, above ...types.UID) Entry {
		return Entry{UID: uid, Name: string(uid), Created: minute(at), State: Waiting, Ancestors: above}
	}
	cases := map[string]struct {
		limit int32
		all   []Entry
		want  map[types.UID]Position
	}{
		"as many begin as there is room for, the oldest first": {2, []Entry{has("a"), waits("d", 3), waits("b", 1), waits("c", 2)}, map[types.UID]Position{"b": {2, 1, 0}, "c": {2, 1, 2}, "d": {2, 1, 3}}},
		"of one age by their names":                            {1, []Entry{waits("b", 1), waits("a", 1)}, map[types.UID]Position{"a": {1, 0, 0}, "b": {1, 0, 2}}},
		"who stands aside is nobody's business":                {1, []Entry{{UID: "a", State: NotQueued}, waits("b", 1)}, map[types.UID]Position{"b": {1, 0, 0}}},
		"a bound that was lowered ends nothing":                {1, []Entry{has("a"), has("b"), waits("c", 1)}, map[types.UID]Position{"c": {1, 2, 1}}},
		"the turn of whom it is a part of does not count":      {1, []Entry{has("a"), waits("b", 1, "p", "a")}, map[types.UID]Position{"b": {1, 0, 0}}},
		"nor does it wait behind who waits for that turn":      {1, []Entry{has("a"), waits("b", 1), waits("c", 2, "a")}, map[types.UID]Position{"c": {1, 0, 0}, "b": {1, 1, 2}}},
		"but two of one parent share it":                       {1, []Entry{has("a"), waits("b", 1, "a"), waits("c", 2, "a")}, map[types.UID]Position{"b": {1, 0, 0}, "c": {1, 0, 2}}},
		"who is a part of one that waits is as any other":      {1, []Entry{waits("b", 1), waits("c", 2, "a")}, map[types.UID]Position{"b": {1, 0, 0}, "c": {1, 0, 2}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Positions(tc.all, tc.limit), cmp.AllowUnexported(Position{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Whoever begins, and in whatever order Runs are listed, there are never more than
// may be, and where there is room somebody begins.
func TestTheQueueFillsWhatThereIs(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 7))
		limit := int32(1 + r.IntN(4))
		var all []Entry
		for n := range 1 + r.IntN(20) {
			all = append(all, Entry{UID: types.UID(fmt.Sprint(n)), Name: fmt.Sprint(n), Created: gen.Noon.Add(time.Duration(r.IntN(5)) * time.Second), State: Waiting})
		}
		for begun := 0; begun < len(all); {
			r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			places := Positions(all, limit)
			i := slices.IndexFunc(all, func(c Entry) bool { t, is := places[c.UID]; return is && t.Number == 0 })
			active := 0
			for _, c := range all {
				if c.State == Started {
					active++
				}
			}
			switch {
			case active > int(limit):
				t.Fatalf("seed %d: %d are active of %d", seed, active, limit)
			case i >= 0:
				all[i].State, begun = Started, begun+1
			case active < int(limit):
				t.Fatalf("seed %d: nobody begins, and %d of %d are active", seed, active, limit)
			default:
				i = slices.IndexFunc(all, func(c Entry) bool { return c.State == Started })
				all[i].State = NotQueued
			}
		}
	}
}

func TestWhoStandsInTheQueue(t *testing.T) {
	begun := func(state string) func(*v1alpha1.Run) {
		return func(r *v1alpha1.Run) {
			r.Status.Attempt = &v1alpha1.Attempt{Number: 2}
			r.Status.Progress = &v1alpha1.RunProgress{Attempt: 2, State: state}
		}
	}
	now := metav1.NewTime(gen.Noon)
	cases := map[string]struct {
		run  func(*v1alpha1.Run)
		want State
	}{
		"one that is new":                      {func(*v1alpha1.Run) {}, Waiting},
		"one that was paused before it began":  {func(r *v1alpha1.Run) { r.Spec.DesiredState = v1alpha1.DesiredPaused }, NotQueued},
		"one that was stopped before it began": {func(r *v1alpha1.Run) { r.Spec.DesiredState = v1alpha1.DesiredStopped }, NotQueued},
		"one that is being deleted":            {func(r *v1alpha1.Run) { r.DeletionTimestamp = &now }, NotQueued},
		"one that a backup restored":           {func(r *v1alpha1.Run) { r.Labels = map[string]string{"velero.io/restore-name": "x"} }, NotQueued},
		"one at work":                          {begun(""), Started},
		"one that asks people":                 {begun(v1alpha1.ReasonAwaitingApproval), Started},
		"one that waits for a model":           {begun(v1alpha1.ReasonWaitingForModel), Started},
		"one that waits for a model without a pod": {func(r *v1alpha1.Run) {
			begun(v1alpha1.ReasonWaitingForModel)(r)
			r.Status.Progress.Result = &v1alpha1.Result{Reason: "Waiting"}
		}, Started},
		"one that is paused in the middle":          {begun(v1alpha1.ReasonPaused), Started},
		"one that waits for a child":                {begun(v1alpha1.ReasonAwaitingChild), NotQueued},
		"one that waited for a child and goes on":   {func(r *v1alpha1.Run) { begun(v1alpha1.ReasonAwaitingChild)(r); r.Status.Attempt.Number = 3 }, Started},
		"one that is being deleted while it works":  {func(r *v1alpha1.Run) { begun("")(r); r.DeletionTimestamp = &now }, Started},
		"one that has ended":                        {func(r *v1alpha1.Run) { begun("")(r); r.Status.CompletionTime = &now }, NotQueued},
		"one that ended while it waited for a Run":  {func(r *v1alpha1.Run) { begun(v1alpha1.ReasonAwaitingChild)(r); r.Status.CompletionTime = &now }, NotQueued},
		"one that was claimed and has not reported": {func(r *v1alpha1.Run) { r.Status.Attempt = &v1alpha1.Attempt{Number: 1} }, Started},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := StateOf(gen.Run(tc.run)); got != tc.want {
				t.Errorf("standingOf() = %d, want %d", got, tc.want)
			}
		})
	}
}
