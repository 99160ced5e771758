package loopdetect_test

import (
	"fmt"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// A talk is a session under construction.
type transcript []step.Step

func (k *transcript) add(s step.Step, text string) {
	s.Seq = int64(len(*k)) + 1
	if text != "" {
		s.Parts = append(s.Parts, step.Part{Kind: step.PartText, Text: text})
	}
	*k = append(*k, s)
}

func (k *transcript) addUser(note step.Note) {
	k.add(step.Step{Role: step.RoleUser, Note: note}, "do it")
}

func (k *transcript) addUserMessage() { k.addUser("") }

func (k *transcript) addText(text string) { k.add(step.Step{Role: step.RoleAssistant}, text) }

// A deed is a call and what came of it.
type fakeCall struct{ name, args, result string }

// image stands between the text of a result and the digest of the image beside it.
const image = "[image] "

// addTurn has the model make calls in one turn. It thinks of something else each
// time.
func (k *transcript) addTurn(calls ...fakeCall) {
	seq := int64(len(*k)) + 1
	s := step.Step{Role: step.RoleAssistant, Parts: []step.Part{{Kind: step.PartThinking, Text: fmt.Sprint("thought ", seq)}}}
	for i, d := range calls {
		s.Calls = append(s.Calls, step.Call{ID: step.CallID("", seq, i+1), Name: d.name, Args: []byte(d.args)})
	}
	k.add(s, "")
	for i, d := range calls {
		text, isError := strings.CutPrefix(d.result, failed)
		text, isPending := strings.CutPrefix(text, pending)
		text, digest, _ := strings.Cut(text, image)
		k.add(step.Step{Role: step.RoleTool, CallID: s.Calls[i].ID, Name: d.name, IsError: isError, Pending: isPending}, text)
		if last := &(*k)[len(*k)-1]; digest != "" {
			last.Parts = append(last.Parts, step.Part{Kind: step.PartImage, File: &step.File{Digest: digest}})
		}
	}
}

// times repeats what is done to a session.
func (*transcript) times(n int, do func(i int)) {
	for i := range n {
		do(i)
	}
}

func numbered(d fakeCall, i int) fakeCall {
	d.args = strings.Replace(d.args, "{", fmt.Sprintf(`{"n":%d,`, i), 1)
	return d
}

// A sample is a session and what is found in it.
type sample struct {
	build func(k *transcript)
	want  string // rule and times; empty: not stuck
}

func samples() map[string]sample {
	return map[string]sample{
		"nothing was said":                          {func(k *transcript) {}, ""},
		"a session that has hardly begun":           {func(k *transcript) { k.addUserMessage(); k.addTurn(ls) }, ""},
		"the same with the same result, four times": {func(k *transcript) { k.addUserMessage(); k.times(4, func(int) { k.addTurn(ls) }) }, "SameResult 4"},
		"the same, five times":                      {func(k *transcript) { k.addUserMessage(); k.times(5, func(int) { k.addTurn(ls) }) }, "SameResult 5"},
		"the same, three times":                     {func(k *transcript) { k.addUserMessage(); k.times(3, func(int) { k.addTurn(ls) }) }, ""},
		"the same with no result": {func(k *transcript) {
			k.addUserMessage()
			k.times(4, func(int) { k.addTurn(fakeCall{"write", `{}`, ""}) })
		}, "SameResult 4"},
		"the same after other things": {func(k *transcript) {
			k.addUserMessage()
			k.addTurn(read)
			k.addText("so")
			k.addTurn(read)
			k.times(4, func(int) { k.addTurn(ls) })
		}, "SameResult 4"},
		"the same, but something else last": {func(k *transcript) { k.addUserMessage(); k.times(4, func(int) { k.addTurn(ls) }); k.addTurn(read) }, ""},
		"the same, and something else in between": {func(k *transcript) {
			k.addUserMessage()
			k.times(4, func(i int) { k.addTurn(ls); k.addTurn(numbered(read, i)) })
		}, ""},
		"a result that changes is being waited for": {func(k *transcript) {
			k.addUserMessage()
			k.times(12, func(i int) { k.addTurn(fakeCall{"status", `{"job":7}`, fmt.Sprintf("%d%% done", i)}) })
		}, ""},
		"the same text with another image each time": {func(k *transcript) {
			k.addUserMessage()
			k.times(8, func(i int) { k.addTurn(fakeCall{"screenshot", `{}`, fmt.Sprint("shown", image, i)}) })
		}, ""},
		"another image alone each time": {func(k *transcript) {
			k.addUserMessage()
			k.times(8, func(i int) { k.addTurn(fakeCall{"screenshot", `{}`, fmt.Sprint(image, i)}) })
		}, ""},
		"the same image each time": {func(k *transcript) {
			k.addUserMessage()
			k.times(4, func(int) { k.addTurn(fakeCall{"screenshot", `{}`, "shown" + image + "a"}) })
		}, "SameResult 4"},
		"arguments that are written differently": {func(k *transcript) {
			k.addUserMessage()
			for _, args := range []string{`{"a":1,"b":[2]}`, `{"b":[2],"a":1}`, `{ "a" : 1, "b" : [ 2 ] }`, "{\"\\u0061\":1,\n\"b\":[2]}"} {
				k.addTurn(fakeCall{"get", args, "x"})
			}
		}, "SameResult 4"},
		"large numbers that differ in the last digit": {func(k *transcript) {
			k.addUserMessage()
			k.times(4, func(i int) { k.addTurn(fakeCall{"get", fmt.Sprintf(`{"id":1234567890123456789%d}`, i), "x"}) })
		}, ""},
		"arguments that are no JSON": {func(k *transcript) {
			k.addUserMessage()
			k.times(4, func(int) { k.addTurn(fakeCall{"get", `{x`, "x"}) })
		}, "SameResult 4"},
		"arguments that differ": {func(k *transcript) { k.addUserMessage(); k.times(8, func(i int) { k.addTurn(numbered(ls, i)) }) }, ""},
		"different tools with the same arguments": {func(k *transcript) {
			k.addUserMessage()
			k.times(4, func(i int) { k.addTurn(fakeCall{fmt.Sprint("get", i), `{}`, "x"}) })
		}, ""},
		"different thoughts": {func(k *transcript) { k.addUserMessage(); k.times(8, func(i int) { k.addTurn(numbered(think, i)) }) }, ""},
		"the same thought":   {func(k *transcript) { k.addUserMessage(); k.times(4, func(int) { k.addTurn(think) }) }, "SameResult 4"},
		"words of others than people in between": {func(k *transcript) {
			k.addUserMessage()
			for _, note := range []step.Note{step.NoteRunner, step.NoteHook, step.NoteNudge, step.NoteSummary} {
				k.addTurn(ls)
				k.addUser(note)
			}
		}, "SameResult 4"},

		"a person spoke in between": {func(k *transcript) {
			k.addUserMessage()
			k.times(3, func(int) { k.addTurn(ls) })
			k.addUser(step.NoteMessage)
			k.addTurn(ls)
		}, ""},
		"stuck again after a person spoke": {func(k *transcript) {
			k.addUserMessage()
			k.addTurn(ls)
			k.addUserMessage()
			k.times(4, func(int) { k.addTurn(ls) })
		}, "SameResult 4"},
		"it was told that it is stuck": {func(k *transcript) {
			k.addUserMessage()
			k.times(4, func(int) { k.addTurn(ls) })
			k.addUser(step.NoteStuck)
		}, ""},
		"it was told and does it again": {func(k *transcript) {
			k.addUserMessage()
			k.times(4, func(int) { k.addTurn(ls) })
			k.addUser(step.NoteStuck)
			k.times(3, func(int) { k.addTurn(ls) })
		}, ""},
		"it was told and is stuck again": {func(k *transcript) {
			k.addUserMessage()
			k.times(4, func(int) { k.addTurn(ls) })
			k.addUser(step.NoteStuck)
			k.times(4, func(int) { k.addTurn(ls) })
		}, "SameResult 4"},

		"the same error, three times": {func(k *transcript) { k.addUserMessage(); k.times(3, func(int) { k.addTurn(failedEdit) }) }, "SameError 3"},
		"the same error, twice":       {func(k *transcript) { k.addUserMessage(); k.times(2, func(int) { k.addTurn(failedEdit) }) }, ""},
		"the same call, other errors": {func(k *transcript) {
			k.addUserMessage()
			k.times(3, func(i int) { d := failedEdit; d.result += fmt.Sprint(i); k.addTurn(d) })
		}, "SameError 3"},
		"the same call, once it works": {func(k *transcript) {
			k.addUserMessage()
			k.addTurn(failedEdit)
			k.addTurn(fakeCall{failedEdit.name, failedEdit.args, "done"})
			k.addTurn(failedEdit)
		}, ""},
		"the same error, but then it worked": {func(k *transcript) {
			k.addUserMessage()
			k.times(3, func(int) { k.addTurn(failedEdit) })
			k.addTurn(fakeCall{failedEdit.name, failedEdit.args, "done"})
		}, ""},
		"three errors of different calls": {func(k *transcript) {
			k.addUserMessage()
			k.times(3, func(i int) { k.addTurn(numbered(failedEdit, i)) })
		}, ""},

		"the same text, three times": {func(k *transcript) {
			k.addUserMessage()
			k.times(3, func(int) { k.addText("Done?"); k.addUser(step.NoteNudge) })
		}, "Monologue 3"},
		"the same text, twice": {func(k *transcript) {
			k.addUserMessage()
			k.times(2, func(int) { k.addText("Done?"); k.addUser(step.NoteNudge) })
		}, ""},
		"the same text, and a call in between": {func(k *transcript) {
			k.addUserMessage()
			k.addText("Done?")
			k.addTurn(ls)
			k.addText("Done?")
			k.addTurn(read)
			k.addText("Done?")
		}, ""},
		"the same text, and another in between": {func(k *transcript) {
			k.addUserMessage()
			k.addText("Done?")
			k.addText("Done?")
			k.addText("Well.")
			k.addText("Done?")
		}, ""},
		"three texts":                          {func(k *transcript) { k.addUserMessage(); k.times(3, func(i int) { k.addText(fmt.Sprint("Text ", i)) }) }, ""},
		"the same call four times in one turn": {func(k *transcript) { k.addUserMessage(); k.addTurn(ls, ls, ls, ls) }, ""},
		"nothing is said, three times":         {func(k *transcript) { k.addUserMessage(); k.times(3, func(int) { k.addText("") }) }, ""},
		"the same text before a call":          {func(k *transcript) { k.addUserMessage(); k.times(4, func(int) { k.addText("Done?") }); k.addTurn(ls) }, ""},

		"two turns take turns": {func(k *transcript) { k.addUserMessage(); k.times(3, func(int) { k.addTurn(ls); k.addTurn(read) }) }, "Alternating 6"},
		"two turns take turns, longer": {func(k *transcript) {
			k.addUserMessage()
			k.times(4, func(int) { k.addTurn(read); k.addTurn(ls) })
			k.addTurn(read)
		}, "Alternating 9"},
		"two turns take turns, shorter": {func(k *transcript) {
			k.addUserMessage()
			k.times(2, func(int) { k.addTurn(ls); k.addTurn(read) })
			k.addTurn(ls)
		}, ""},
		"two turns take turns, but one result changes": {func(k *transcript) {
			k.addUserMessage()
			k.times(6, func(i int) { k.addTurn(ls); d := read; d.result = fmt.Sprint(i); k.addTurn(d) })
		}, ""},
		"three turns take turns": {func(k *transcript) {
			k.addUserMessage()
			k.times(4, func(int) { k.addTurn(ls); k.addTurn(read); k.addTurn(think) })
		}, ""},

		"ten summaries": {func(k *transcript) {
			k.addUserMessage()
			k.addTurn(ls)
			k.times(10, func(int) { k.addUser(step.NoteSummary) })
		}, "Compacting 10"},
		"nine summaries": {func(k *transcript) {
			k.addUserMessage()
			k.addTurn(ls)
			k.times(9, func(int) { k.addUser(step.NoteSummary) })
		}, ""},
		"ten summaries, and work in between": {func(k *transcript) {
			k.addUserMessage()
			k.times(10, func(i int) { k.addTurn(numbered(ls, i)); k.addUser(step.NoteSummary) })
		}, ""},
		"ten summaries, and work after": {func(k *transcript) {
			k.addUserMessage()
			k.times(10, func(int) { k.addUser(step.NoteSummary) })
			k.addTurn(ls)
		}, ""},

		"one tool fails with three calls in turn": {func(k *transcript) {
			k.addUserMessage()
			k.times(6, func(i int) { k.addTurn(numbered(failedEdit, i%3)) })
		}, "ToolFails 6"},
		"one tool fails five times": {func(k *transcript) {
			k.addUserMessage()
			k.times(5, func(i int) { k.addTurn(numbered(failedEdit, i%2)) })
		}, ""},
		"one tool fails, whatever it is given": {func(k *transcript) {
			k.addUserMessage()
			k.times(12, func(i int) { k.addTurn(numbered(failedEdit, i)) })
		}, "ToolFails 12"},
		"reads of eleven names that are guessed":     {func(k *transcript) { k.addUserMessage(); k.times(11, func(i int) { k.addTurn(numbered(missing, i)) }) }, ""},
		"reads of three names that are guessed over": {func(k *transcript) { k.addUserMessage(); k.times(6, func(i int) { k.addTurn(numbered(missing, i%3)) }) }, "ToolFails 6"},
		"one tool fails, others work": {func(k *transcript) {
			k.addUserMessage()
			k.times(12, func(i int) { k.addTurn(numbered(failedEdit, i)); k.addTurn(numbered(read, i)) })
		}, ""},
		"one tool fails, others learn nothing new": {func(k *transcript) {
			k.addUserMessage()
			k.times(13, func(i int) { k.addTurn(numbered(failedEdit, i)); k.addTurn(read) })
		}, "ToolFails 12"},
		"a failing test is run again between edits": {func(k *transcript) {
			k.addUserMessage()
			k.times(14, func(i int) { k.addTurn(test); k.addTurn(numbered(edit, i)) })
			k.addTurn(test)
		}, ""},
		"a failing test is run again in the turn of an edit": {func(k *transcript) {
			k.addUserMessage()
			k.times(14, func(i int) { k.addTurn(numbered(edit, i), test) })
		}, ""},
		"a failing test is run again, and nothing is edited": {func(k *transcript) { k.addUserMessage(); k.addTurn(edit); k.times(3, func(int) { k.addTurn(test) }) }, "SameError 3"},
		"a failing test is run again, and only read about": {func(k *transcript) {
			k.addUserMessage()
			k.times(7, func(int) { k.addTurn(test); k.addTurn(read) })
		}, "Alternating 14"},

		"a background job is polled":                 {func(k *transcript) { k.addUserMessage(); k.times(40, func(int) { k.addTurn(poll) }) }, ""},
		"a background job is polled between looks":   {func(k *transcript) { k.addUserMessage(); k.times(12, func(int) { k.addTurn(poll); k.addTurn(ls) }) }, ""},
		"a background job is polled beside a look":   {func(k *transcript) { k.addUserMessage(); k.times(12, func(int) { k.addTurn(poll, ls) }) }, ""},
		"a background job that has ended is polled":  {func(k *transcript) { k.addUserMessage(); k.times(4, func(int) { k.addTurn(ended) }) }, "SameResult 4"},
		"a background job that is unknown is polled": {func(k *transcript) { k.addUserMessage(); k.times(3, func(int) { k.addTurn(unknown) }) }, "SameError 3"},
		"a poll does not forgive what fails": {func(k *transcript) {
			k.addUserMessage()
			k.times(6, func(i int) { k.addTurn(numbered(failedEdit, i%2)); k.addTurn(poll) })
		}, "ToolFails 6"},

		"one tool fails, but not always": {func(k *transcript) {
			k.addUserMessage()
			k.times(9, func(i int) {
				d := numbered(failedEdit, i)
				d.result = []string{failed, failed, "ok"}[i%3]
				k.addTurn(d)
			})
		}, ""},
		"one tool fails six times in one turn": {func(k *transcript) {
			k.addUserMessage()
			k.addTurn(numbered(failedEdit, 1), numbered(failedEdit, 2), numbered(failedEdit, 3), numbered(failedEdit, 4), numbered(failedEdit, 5), numbered(failedEdit, 6))
		}, ""},
		"one tool fails twice in each of six turns": {func(k *transcript) {
			k.addUserMessage()
			k.times(6, func(i int) { k.addTurn(numbered(failedEdit, i*i%3), numbered(failedEdit, i*i%3+1)) })
		}, "ToolFails 6"},
		"one tool fails twice in each of five turns": {func(k *transcript) {
			k.addUserMessage()
			k.times(5, func(i int) { k.addTurn(numbered(failedEdit, 2*i), numbered(failedEdit, 2*i+1)) })
		}, ""},
		"failures of several tools": {func(k *transcript) {
			k.addUserMessage()
			k.times(10, func(i int) { d := numbered(failedEdit, i); d.name = fmt.Sprint("t", i%2); k.addTurn(d) })
		}, ""},
		"twelve failures, but thirty turns ago": {func(k *transcript) {
			k.addUserMessage()
			k.times(12, func(i int) { k.addTurn(numbered(failedEdit, i)) })
			k.times(30, func(i int) { k.addTurn(read) })
			k.addTurn(think)
		}, ""},

		"the same calls in one turn, in any order": {func(k *transcript) {
			k.addUserMessage()
			k.times(2, func(int) { k.addTurn(ls, read, ls); k.addTurn(read, ls, ls) })
		}, "SameResult 4"},
		"the same call, more often each time": {func(k *transcript) {
			k.addUserMessage()
			fakeCalls := []fakeCall{}
			k.times(5, func(int) { fakeCalls = append(fakeCalls, ls); k.addTurn(fakeCalls...) })
		}, ""},
		"one call of the turn differs": {func(k *transcript) { k.addUserMessage(); k.times(8, func(i int) { k.addTurn(ls, numbered(read, i)) }) }, ""},
		"one call of the turn works": {func(k *transcript) {
			k.addUserMessage()
			k.times(5, func(i int) { d := failedEdit; d.result += fmt.Sprint(i); k.addTurn(d, ls) })
		}, ""},
		"forty calls in one turn": {func(k *transcript) {
			k.addUserMessage()
			var fakeCalls []fakeCall
			for i := range 40 {
				fakeCalls = append(fakeCalls, numbered(ls, i))
			}
			k.times(4, func(int) { k.addTurn(fakeCalls...) })
		}, "SameResult 4"},
		"calls that nobody answered": {func(k *transcript) {
			k.addUserMessage()
			k.times(6, func(int) { k.addTurn(ls); *k = (*k)[:len(*k)-1] })
		}, ""},
	}
}
