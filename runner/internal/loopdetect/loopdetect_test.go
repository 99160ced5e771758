package loopdetect_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/loopdetect"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// A talk is a session under construction.
type talk []step.Step

func (k *talk) add(s step.Step, text string) {
	s.Seq = int64(len(*k)) + 1
	if text != "" {
		s.Parts = append(s.Parts, step.Part{Kind: step.PartText, Text: text})
	}
	*k = append(*k, s)
}

func (k *talk) told(note step.Note) { k.add(step.Step{Role: step.RoleUser, Note: note}, "do it") }
func (k *talk) person()             { k.told("") }
func (k *talk) says(text string)    { k.add(step.Step{Role: step.RoleAssistant}, text) }

// A deed is a call and what came of it.
type deed struct{ name, args, result string }

// Marks of the result of a deed: an error, and a report that work still runs.
const (
	failed  = "!"
	pending = "…"
)

// does has the model make calls in one turn. It thinks of something else each
// time.
func (k *talk) does(deeds ...deed) {
	seq := int64(len(*k)) + 1
	s := step.Step{Role: step.RoleAssistant, Parts: []step.Part{{Kind: step.PartThinking, Text: fmt.Sprint("thought ", seq)}}}
	for i, d := range deeds {
		s.Calls = append(s.Calls, step.Call{ID: step.CallID("", seq, i+1), Name: d.name, Args: []byte(d.args)})
	}
	k.add(s, "")
	for i, d := range deeds {
		text, isError := strings.CutPrefix(d.result, failed)
		text, isPending := strings.CutPrefix(text, pending)
		k.add(step.Step{Role: step.RoleTool, CallID: s.Calls[i].ID, Name: d.name, IsError: isError, Pending: isPending}, text)
	}
}

// times repeats what is done to a session.
func (*talk) times(n int, do func(i int)) {
	for i := range n {
		do(i)
	}
}

var (
	ls      = deed{"ls", `{"path":"/workspace"}`, "a.txt"}
	read    = deed{"read", `{"path":"/workspace/a.txt"}`, "hello"}
	wrong   = deed{"edit", `{"old":"x","new":"y"}`, failed + "the text is not in the file"}
	think   = deed{"think", `{"thought":"hm"}`, "noted"}
	poll    = deed{"shell_output", `{"id":"job-1"}`, pending + "(no new output)\nstill running"}
	test    = deed{"run_tests", `{}`, failed + "1 test failed: TestX"}
	ended   = deed{"shell_output", `{"id":"job-1"}`, "(no new output)\nexit code: 0"}
	unknown = deed{"shell_output", `{"id":"job-7"}`, failed + "there is no such job"}
	missing = deed{"read", `{"path":"/workspace/x.go"}`, failed + "not found"}
	edit    = deed{"edit", `{"old":"x","new":"y"}`, "edited"}
)

func numbered(d deed, i int) deed {
	d.args = strings.Replace(d.args, "{", fmt.Sprintf(`{"n":%d,`, i), 1)
	return d
}

// A sample is a session and what is found in it.
type sample struct {
	build func(k *talk)
	want  string // rule and times; empty: not stuck
}

func samples() map[string]sample {
	return map[string]sample{
		"nothing was said":                          {func(k *talk) {}, ""},
		"a session that has hardly begun":           {func(k *talk) { k.person(); k.does(ls) }, ""},
		"the same with the same result, four times": {func(k *talk) { k.person(); k.times(4, func(int) { k.does(ls) }) }, "SameResult 4"},
		"the same, five times":                      {func(k *talk) { k.person(); k.times(5, func(int) { k.does(ls) }) }, "SameResult 5"},
		"the same, three times":                     {func(k *talk) { k.person(); k.times(3, func(int) { k.does(ls) }) }, ""},
		"the same with no result":                   {func(k *talk) { k.person(); k.times(4, func(int) { k.does(deed{"write", `{}`, ""}) }) }, "SameResult 4"},
		"the same after other things": {func(k *talk) {
			k.person()
			k.does(read)
			k.says("so")
			k.does(read)
			k.times(4, func(int) { k.does(ls) })
		}, "SameResult 4"},
		"the same, but something else last": {func(k *talk) { k.person(); k.times(4, func(int) { k.does(ls) }); k.does(read) }, ""},
		"the same, and something else in between": {func(k *talk) {
			k.person()
			k.times(4, func(i int) { k.does(ls); k.does(numbered(read, i)) })
		}, ""},
		"a result that changes is being waited for": {func(k *talk) {
			k.person()
			k.times(12, func(i int) { k.does(deed{"status", `{"job":7}`, fmt.Sprintf("%d%% done", i)}) })
		}, ""},
		"arguments that are written differently": {func(k *talk) {
			k.person()
			for _, args := range []string{`{"a":1,"b":[2]}`, `{"b":[2],"a":1}`, `{ "a" : 1, "b" : [ 2 ] }`, "{\"\\u0061\":1,\n\"b\":[2]}"} {
				k.does(deed{"get", args, "x"})
			}
		}, "SameResult 4"},
		"large numbers that differ in the last digit": {func(k *talk) {
			k.person()
			k.times(4, func(i int) { k.does(deed{"get", fmt.Sprintf(`{"id":1234567890123456789%d}`, i), "x"}) })
		}, ""},
		"arguments that are no JSON": {func(k *talk) { k.person(); k.times(4, func(int) { k.does(deed{"get", `{x`, "x"}) }) }, "SameResult 4"},
		"arguments that differ":      {func(k *talk) { k.person(); k.times(8, func(i int) { k.does(numbered(ls, i)) }) }, ""},
		"different tools with the same arguments": {func(k *talk) {
			k.person()
			k.times(4, func(i int) { k.does(deed{fmt.Sprint("get", i), `{}`, "x"}) })
		}, ""},
		"different thoughts": {func(k *talk) { k.person(); k.times(8, func(i int) { k.does(numbered(think, i)) }) }, ""},
		"the same thought":   {func(k *talk) { k.person(); k.times(4, func(int) { k.does(think) }) }, "SameResult 4"},
		"words of others than people in between": {func(k *talk) {
			k.person()
			for _, note := range []step.Note{step.NoteRunner, step.NoteHook, step.NoteNudge, step.NoteSummary} {
				k.does(ls)
				k.told(note)
			}
		}, "SameResult 4"},

		"a person spoke in between":        {func(k *talk) { k.person(); k.times(3, func(int) { k.does(ls) }); k.told(step.NoteMessage); k.does(ls) }, ""},
		"stuck again after a person spoke": {func(k *talk) { k.person(); k.does(ls); k.person(); k.times(4, func(int) { k.does(ls) }) }, "SameResult 4"},
		"it was told that it is stuck":     {func(k *talk) { k.person(); k.times(4, func(int) { k.does(ls) }); k.told(step.NoteStuck) }, ""},
		"it was told and does it again": {func(k *talk) {
			k.person()
			k.times(4, func(int) { k.does(ls) })
			k.told(step.NoteStuck)
			k.times(3, func(int) { k.does(ls) })
		}, ""},
		"it was told and is stuck again": {func(k *talk) {
			k.person()
			k.times(4, func(int) { k.does(ls) })
			k.told(step.NoteStuck)
			k.times(4, func(int) { k.does(ls) })
		}, "SameResult 4"},

		"the same error, three times": {func(k *talk) { k.person(); k.times(3, func(int) { k.does(wrong) }) }, "SameError 3"},
		"the same error, twice":       {func(k *talk) { k.person(); k.times(2, func(int) { k.does(wrong) }) }, ""},
		"the same call, other errors": {func(k *talk) {
			k.person()
			k.times(3, func(i int) { d := wrong; d.result += fmt.Sprint(i); k.does(d) })
		}, "SameError 3"},
		"the same call, once it works": {func(k *talk) { k.person(); k.does(wrong); k.does(deed{wrong.name, wrong.args, "done"}); k.does(wrong) }, ""},
		"the same error, but then it worked": {func(k *talk) {
			k.person()
			k.times(3, func(int) { k.does(wrong) })
			k.does(deed{wrong.name, wrong.args, "done"})
		}, ""},
		"three errors of different calls": {func(k *talk) { k.person(); k.times(3, func(i int) { k.does(numbered(wrong, i)) }) }, ""},

		"the same text, three times": {func(k *talk) { k.person(); k.times(3, func(int) { k.says("Done?"); k.told(step.NoteNudge) }) }, "Monologue 3"},
		"the same text, twice":       {func(k *talk) { k.person(); k.times(2, func(int) { k.says("Done?"); k.told(step.NoteNudge) }) }, ""},
		"the same text, and a call in between": {func(k *talk) {
			k.person()
			k.says("Done?")
			k.does(ls)
			k.says("Done?")
			k.does(read)
			k.says("Done?")
		}, ""},
		"the same text, and another in between": {func(k *talk) { k.person(); k.says("Done?"); k.says("Done?"); k.says("Well."); k.says("Done?") }, ""},
		"three texts":                           {func(k *talk) { k.person(); k.times(3, func(i int) { k.says(fmt.Sprint("Text ", i)) }) }, ""},
		"the same call four times in one turn":  {func(k *talk) { k.person(); k.does(ls, ls, ls, ls) }, ""},
		"nothing is said, three times":          {func(k *talk) { k.person(); k.times(3, func(int) { k.says("") }) }, ""},
		"the same text before a call":           {func(k *talk) { k.person(); k.times(4, func(int) { k.says("Done?") }); k.does(ls) }, ""},

		"two turns take turns":          {func(k *talk) { k.person(); k.times(3, func(int) { k.does(ls); k.does(read) }) }, "Alternating 6"},
		"two turns take turns, longer":  {func(k *talk) { k.person(); k.times(4, func(int) { k.does(read); k.does(ls) }); k.does(read) }, "Alternating 9"},
		"two turns take turns, shorter": {func(k *talk) { k.person(); k.times(2, func(int) { k.does(ls); k.does(read) }); k.does(ls) }, ""},
		"two turns take turns, but one result changes": {func(k *talk) {
			k.person()
			k.times(6, func(i int) { k.does(ls); d := read; d.result = fmt.Sprint(i); k.does(d) })
		}, ""},
		"three turns take turns": {func(k *talk) { k.person(); k.times(4, func(int) { k.does(ls); k.does(read); k.does(think) }) }, ""},

		"ten summaries":  {func(k *talk) { k.person(); k.does(ls); k.times(10, func(int) { k.told(step.NoteSummary) }) }, "Compacting 10"},
		"nine summaries": {func(k *talk) { k.person(); k.does(ls); k.times(9, func(int) { k.told(step.NoteSummary) }) }, ""},
		"ten summaries, and work in between": {func(k *talk) {
			k.person()
			k.times(10, func(i int) { k.does(numbered(ls, i)); k.told(step.NoteSummary) })
		}, ""},
		"ten summaries, and work after": {func(k *talk) { k.person(); k.times(10, func(int) { k.told(step.NoteSummary) }); k.does(ls) }, ""},

		"one tool fails with three calls in turn":    {func(k *talk) { k.person(); k.times(6, func(i int) { k.does(numbered(wrong, i%3)) }) }, "ToolFails 6"},
		"one tool fails five times":                  {func(k *talk) { k.person(); k.times(5, func(i int) { k.does(numbered(wrong, i%2)) }) }, ""},
		"one tool fails, whatever it is given":       {func(k *talk) { k.person(); k.times(12, func(i int) { k.does(numbered(wrong, i)) }) }, "ToolFails 12"},
		"reads of eleven names that are guessed":     {func(k *talk) { k.person(); k.times(11, func(i int) { k.does(numbered(missing, i)) }) }, ""},
		"reads of three names that are guessed over": {func(k *talk) { k.person(); k.times(6, func(i int) { k.does(numbered(missing, i%3)) }) }, "ToolFails 6"},
		"one tool fails, others work": {func(k *talk) {
			k.person()
			k.times(12, func(i int) { k.does(numbered(wrong, i)); k.does(numbered(read, i)) })
		}, ""},
		"one tool fails, others learn nothing new": {func(k *talk) {
			k.person()
			k.times(13, func(i int) { k.does(numbered(wrong, i)); k.does(read) })
		}, "ToolFails 12"},
		"a failing test is run again between edits": {func(k *talk) {
			k.person()
			k.times(14, func(i int) { k.does(test); k.does(numbered(edit, i)) })
			k.does(test)
		}, ""},
		"a failing test is run again in the turn of an edit": {func(k *talk) { k.person(); k.times(14, func(i int) { k.does(numbered(edit, i), test) }) }, ""},
		"a failing test is run again, and nothing is edited": {func(k *talk) { k.person(); k.does(edit); k.times(3, func(int) { k.does(test) }) }, "SameError 3"},
		"a failing test is run again, and only read about": {func(k *talk) {
			k.person()
			k.times(7, func(int) { k.does(test); k.does(read) })
		}, "Alternating 14"},

		"a background job is polled":                 {func(k *talk) { k.person(); k.times(40, func(int) { k.does(poll) }) }, ""},
		"a background job is polled between looks":   {func(k *talk) { k.person(); k.times(12, func(int) { k.does(poll); k.does(ls) }) }, ""},
		"a background job is polled beside a look":   {func(k *talk) { k.person(); k.times(12, func(int) { k.does(poll, ls) }) }, ""},
		"a background job that has ended is polled":  {func(k *talk) { k.person(); k.times(4, func(int) { k.does(ended) }) }, "SameResult 4"},
		"a background job that is unknown is polled": {func(k *talk) { k.person(); k.times(3, func(int) { k.does(unknown) }) }, "SameError 3"},
		"a poll does not forgive what fails": {func(k *talk) {
			k.person()
			k.times(6, func(i int) { k.does(numbered(wrong, i%2)); k.does(poll) })
		}, "ToolFails 6"},

		"one tool fails, but not always": {func(k *talk) {
			k.person()
			k.times(9, func(i int) { d := numbered(wrong, i); d.result = []string{failed, failed, "ok"}[i%3]; k.does(d) })
		}, ""},
		"one tool fails six times in one turn": {func(k *talk) {
			k.person()
			k.does(numbered(wrong, 1), numbered(wrong, 2), numbered(wrong, 3), numbered(wrong, 4), numbered(wrong, 5), numbered(wrong, 6))
		}, ""},
		"one tool fails twice in each of six turns": {func(k *talk) {
			k.person()
			k.times(6, func(i int) { k.does(numbered(wrong, i*i%3), numbered(wrong, i*i%3+1)) })
		}, "ToolFails 6"},
		"one tool fails twice in each of five turns": {func(k *talk) {
			k.person()
			k.times(5, func(i int) { k.does(numbered(wrong, 2*i), numbered(wrong, 2*i+1)) })
		}, ""},
		"failures of several tools": {func(k *talk) {
			k.person()
			k.times(10, func(i int) { d := numbered(wrong, i); d.name = fmt.Sprint("t", i%2); k.does(d) })
		}, ""},
		"twelve failures, but thirty turns ago": {func(k *talk) {
			k.person()
			k.times(12, func(i int) { k.does(numbered(wrong, i)) })
			k.times(30, func(i int) { k.does(read) })
			k.does(think)
		}, ""},

		"the same calls in one turn, in any order": {func(k *talk) {
			k.person()
			k.times(2, func(int) { k.does(ls, read, ls); k.does(read, ls, ls) })
		}, "SameResult 4"},
		"the same call, more often each time": {func(k *talk) {
			k.person()
			deeds := []deed{}
			k.times(5, func(int) { deeds = append(deeds, ls); k.does(deeds...) })
		}, ""},
		"one call of the turn differs": {func(k *talk) { k.person(); k.times(8, func(i int) { k.does(ls, numbered(read, i)) }) }, ""},
		"one call of the turn works": {func(k *talk) {
			k.person()
			k.times(5, func(i int) { d := wrong; d.result += fmt.Sprint(i); k.does(d, ls) })
		}, ""},
		"forty calls in one turn": {func(k *talk) {
			k.person()
			var deeds []deed
			for i := range 40 {
				deeds = append(deeds, numbered(ls, i))
			}
			k.times(4, func(int) { k.does(deeds...) })
		}, "SameResult 4"},
		"calls that nobody answered": {func(k *talk) {
			k.person()
			k.times(6, func(int) { k.does(ls); *k = (*k)[:len(*k)-1] })
		}, ""},
	}
}

func TestFind(t *testing.T) {
	for name, tc := range samples() {
		t.Run(name, func(t *testing.T) {
			var k talk
			tc.build(&k)
			f, found := loopdetect.Find(k)
			got := ""
			if found {
				got = fmt.Sprint(f.Rule, " ", f.Times)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAFindingIsInWords(t *testing.T) {
	long := strings.Repeat("ä", 500)
	cases := map[string]struct {
		build func(k *talk)
		want  string
	}{
		"one tool":       {func(k *talk) { k.times(4, func(int) { k.does(ls) }) }, "calling ls gave the same result 4 times in a row, with the same arguments"},
		"several":        {func(k *talk) { k.times(4, func(int) { k.does(read, ls, read) }) }, "calling ls, read gave the same result 4 times in a row, with the same arguments"},
		"errors":         {func(k *talk) { k.times(3, func(int) { k.does(wrong) }) }, "calling edit failed 3 times in a row, with the same arguments"},
		"a long text":    {func(k *talk) { k.times(3, func(int) { k.says(long) }) }, `the same was said 3 times in a row and nothing was done: "` + long[:120] + `…"`},
		"taking turns":   {func(k *talk) { k.times(3, func(int) { k.does(ls); k.does(read) }) }, "calling ls and read in turn gave the same results, 6 turns in all"},
		"summaries":      {func(k *talk) { k.times(10, func(int) { k.told(step.NoteSummary) }) }, "the session was summarized 10 times in a row and nothing was done in between"},
		"failures":       {func(k *talk) { k.times(7, func(i int) { k.does(numbered(wrong, i%3)) }) }, "calling edit failed in 7 turns in a row, and nothing else was achieved"},
		"a hostile name": {func(k *talk) { k.times(4, func(int) { k.does(deed{long, `{}`, ""}) }) }, "calling " + long[:120] + "… gave the same result 4 times in a row, with the same arguments"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var k talk
			tc.build(&k)
			f, _ := loopdetect.Find(k)
			if diff := cmp.Diff(tc.want, f.What); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Asked before every model call: a session of reads of 20 KB, each another one.
func BenchmarkFind(b *testing.B) {
	var k talk
	k.person()
	for i := range 500 {
		k.does(deed{"read", fmt.Sprintf(`{"path":"/workspace/%d.txt"}`, i), fmt.Sprint(i, strings.Repeat("x", 20_000))})
	}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = loopdetect.Find(k)
	}
}
