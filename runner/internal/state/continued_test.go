package state

import (
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// kept are the fields that a Run keeps of the Run that it continues. Every other field is reset: a new one too, unless it
// is added here.
var kept = map[string]bool{
	"Run.Agent": true, "Run.sessions": true,
	"Session.Steps": true, "Session.Last": true, "Session.Turns": true, "Session.CompactedAt": true,
	"Session.Results": true, "Session.Intents": true, "Session.Since": true,
	"Session.Before": true, "Session.TakenOver": true, // of the hand-over itself
}

// setFields sets the exported fields of a struct to values other than zero.
func setFields(t *testing.T, v reflect.Value) {
	t.Helper()
	for _, f := range v.Fields() {
		if !f.CanSet() {
			continue
		}
		switch f.Kind() {
		case reflect.String:
			f.SetString("x")
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Int, reflect.Int64:
			f.SetInt(7)
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		case reflect.Map:
			f.Set(reflect.MakeMap(f.Type()))
			f.SetMapIndex(reflect.ValueOf("x"), reflect.Zero(f.Type().Elem()))
		case reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		case reflect.Struct:
			setFields(t, f)
		default:
			t.Fatalf("a field of kind %s", f.Kind())
		}
	}
}

// left are the fields of a struct that are not zero.
func left(name string, v reflect.Value) map[string]bool {
	out := map[string]bool{}
	for field, value := range v.Fields() {
		if !value.IsZero() {
			out[name+"."+field.Name] = true
		}
	}
	return out
}

func TestARunThatContinuesAnotherKeepsWhatWasSaidAlone(t *testing.T) {
	s := &Session{}
	setFields(t, reflect.ValueOf(s).Elem())
	s.Steps[0] = step.Step{Seq: 7, Role: step.RoleUser}
	r := &Run{
		acted: map[string]bool{"d": true}, released: map[journal.Source]bool{{Agent: "a"}: true}, remotes: map[string]RemoteCalls{"r": {}},
		unclear: []UnclearAnswers{{}}, limitRequests: map[string]time.Time{"l": {}}, sessions: map[string]*Session{"": s}, childRuns: step.Meter{Steps: 1},
	}
	setFields(t, reflect.ValueOf(r).Elem())
	header := &journal.Header{Continues: &journal.Continued{Run: "first"}}
	if err := r.Apply(journal.Record{Kind: journal.KindHeader, Header: header}); err != nil {
		t.Fatal(err)
	}
	got := left("Run", reflect.ValueOf(r).Elem())
	maps.Copy(got, left("Session", reflect.ValueOf(r.Session("")).Elem()))
	if diff := cmp.Diff(slices.Sorted(maps.Keys(kept)), slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("kept, -want +got:\n%s", diff)
	}
	if b := r.Session("").Before; b.Run != "first" || b.Ended != "x" {
		t.Errorf("it continues %+v", b)
	}
}

// A child Run belongs to the Run before: the call that waited for it is lost.
func TestACallThatWaitedForAChildRunOfTheRunBeforeIsLost(t *testing.T) {
	r := page(t, speaks("", 1, ""), calling("", 2, 2), delegating("", "s2c1", "q"))
	if err := r.Apply(journal.Record{Kind: journal.KindHeader, Header: &journal.Header{Continues: &journal.Continued{Run: "first"}}}); err != nil {
		t.Fatal(err)
	}
	s := r.Session("")
	if i, begun := s.Intents["s2c1"]; !begun || i.Effect != "" || len(s.Intents) != 1 || len(s.Requests) != 0 {
		t.Errorf("begun %+v, requests %+v", s.Intents, s.Requests)
	}
}

// Opaque parts go to a Model of the same name only if its definition is the same.
func TestAnswersOfModelsThatChangedAreThoseOfOthers(t *testing.T) {
	r := page(t, speaks("", 1, ""), journal.Record{Kind: journal.KindStep, Step: &step.Step{Seq: 2, Role: step.RoleAssistant, Model: "same"}},
		journal.Record{Kind: journal.KindStep, Step: &step.Step{Seq: 3, Role: step.RoleAssistant, Model: "changed"}})
	before := r.Session("").Steps
	if err := r.Apply(journal.Record{Kind: journal.KindHeader, Header: &journal.Header{Continues: &journal.Continued{Run: "first", Models: []string{"same"}}}}); err != nil {
		t.Fatal(err)
	}
	if got := r.Session("").Steps; got[1].Model != "same" || got[2].Model != "changed of Run first" || before[2].Model != "changed" {
		t.Errorf("Models %q and %q; before %q", got[1].Model, got[2].Model, before[2].Model)
	}
}
