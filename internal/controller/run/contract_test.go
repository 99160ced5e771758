package run

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// The runner knows no Kubernetes, so it has its own copy of what it writes. The
// two must be one shape: every field of either is a field of the other.
func TestRunnerAndAPIAgreeOnProgress(t *testing.T) {
	theirs, ours := task.Progress{}, v1alpha1.RunProgress{}
	fill(reflect.ValueOf(&theirs).Elem())
	fill(reflect.ValueOf(&ours).Elem())
	decodeStrictly(t, runnerpod.ToJSON(theirs), &v1alpha1.RunProgress{})
	decodeStrictly(t, runnerpod.ToJSON(ours), &task.Progress{})
	if diff := cmp.Diff(shape(runnerpod.ToJSON(theirs)), shape(runnerpod.ToJSON(ours))); diff != "" {
		t.Errorf("runner and API differ (-runner +API):\n%s", diff)
	}
}

func decodeStrictly(t *testing.T, data []byte, into any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Errorf("reading %s as %T: %v", data, into, err)
	}
}

// shape is the paths of a JSON value.
func shape(data []byte) []string {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return []string{err.Error()}
	}
	var out []string
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, inner := range v {
				walk(path+"."+k, inner)
			}
		case []any:
			for _, inner := range v {
				walk(path+"[]", inner)
			}
		default:
			out = append(out, path)
		}
	}
	walk("", v)
	slices.Sort(out)
	return slices.Compact(out)
}

// fill gives every field a value other than its zero.
func fill(v reflect.Value) {
	switch v.Kind() { //nolint:exhaustive // the kinds that the contract is made of
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		if v.Type().Name() == "Time" {
			return
		}
		for _, field := range v.Fields() {
			fill(field)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.String:
		v.SetString("2030-01-01T00:00:00Z") // a time where one is wanted
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	}
}

// A warning is a part of the message, and never crowds it out or is crowded out.
func TestAWarningIsAddedToTheMessage(t *testing.T) {
	const warning = "Every call of toolset weather failed (3 of 3): lookup wether.example: no such host. Check spec.requests.baseURL of Toolset weather."
	long := strings.Repeat("x", task.MaxMessage)
	cases := map[string]struct {
		result v1alpha1.Result
		want   string
	}{
		"of an older runner":     {v1alpha1.Result{Reason: "Finished", Message: "Pushed"}, "Pushed"},
		"of one that says more":  {v1alpha1.Result{Reason: "Finished", Message: "Pushed.", Warning: warning}, "Pushed. " + warning},
		"of one that is content": {v1alpha1.Result{Reason: "Finished", Warning: warning}, "The work is done. " + warning},
		"of work that failed":    {v1alpha1.Result{Reason: "Stuck", Warning: warning}, warning},
		"of one that says a lot": {v1alpha1.Result{Reason: "StepLimit", Message: long, Warning: long}, task.Cut(long, task.MaxMessage-task.MaxWarning-2) + ". " + task.Cut(long, task.MaxWarning)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := outcomeOfResult(tc.result).message; got != tc.want || len(got) > task.MaxMessage {
				t.Errorf("the message is %q, want %q", got, tc.want)
			}
		})
	}
}

// Every reason that a runner commits is one that a Run may have.
func TestRunnerReasonsAreReasonsOfARun(t *testing.T) {
	for _, r := range task.Reasons {
		known := r == task.ReasonFinished || slices.Contains(v1alpha1.FailureReasons, string(r)) || slices.Contains(v1alpha1.ActiveReasons, string(r))
		if r.Commits() && !known {
			t.Errorf("a runner may commit %s, which no condition knows", r)
		}
	}
}

// A runner of another release may give a reason that this operator does not
// know: the Run ends all the same.
func TestUnknownReasonIsAFailureOfTheRunner(t *testing.T) {
	v := outcomeOfResult(v1alpha1.Result{Reason: "Bored", Message: "why not"})
	want := attemptOutcome{budget: budgetRetries, final: true, reason: v1alpha1.ReasonRunnerFailed, message: `the runner ended with the unknown reason "Bored": why not`}
	if v != want {
		t.Errorf("verdictOf() = %+v, want %+v", v, want)
	}
}

// The schema knows the reasons of this release only.
func TestUnknownReasonOfADeadRunnerIsStoredAsAFailure(t *testing.T) {
	p := progressOf(state{run: gen.Run(func(r *v1alpha1.Run) { r.Status.Attempt = &v1alpha1.Attempt{Number: 1} })}, task.Termination{Result: task.Result{Reason: "Bored"}})
	if p.Result.Reason != v1alpha1.ReasonRunnerFailed {
		t.Errorf("status would have the reason %q", p.Result.Reason)
	}
}
