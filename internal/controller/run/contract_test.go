package run

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// The runner knows no Kubernetes, so it has its own copy of what it writes. The
// two must be one shape: every field of either is a field of the other.
func TestRunnerAndAPIAgreeOnProgress(t *testing.T) {
	theirs, ours := task.Progress{}, v1alpha1.RunProgress{}
	fill(reflect.ValueOf(&theirs).Elem())
	fill(reflect.ValueOf(&ours).Elem())
	decodeStrictly(t, encode(theirs), &v1alpha1.RunProgress{})
	decodeStrictly(t, encode(ours), &task.Progress{})
	if diff := cmp.Diff(shape(encode(theirs)), shape(encode(ours))); diff != "" {
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
	v := verdictOf(v1alpha1.Result{Reason: "Bored", Message: "why not"})
	want := verdict{charge: chargeFailure, final: true, reason: v1alpha1.ReasonRunnerFailed, message: `the runner ended with the unknown reason "Bored": why not`}
	if v != want {
		t.Errorf("verdictOf() = %+v, want %+v", v, want)
	}
}
