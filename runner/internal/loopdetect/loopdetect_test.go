package loopdetect_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/loopdetect"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// Marks of the result of a deed: an error, and a report that work still runs.
const (
	failed  = "!"
	pending = "…"
)

var (
	ls         = fakeCall{"ls", `{"path":"/workspace"}`, "a.txt"}
	read       = fakeCall{"read", `{"path":"/workspace/a.txt"}`, "hello"}
	failedEdit = fakeCall{"edit", `{"old":"x","new":"y"}`, failed + "the text is not in the file"}
	think      = fakeCall{"think", `{"thought":"hm"}`, "noted"}
	poll       = fakeCall{"shell_output", `{"id":"job-1"}`, pending + "(no new output)\nstill running"}
	test       = fakeCall{"run_tests", `{}`, failed + "1 test failed: TestX"}
	ended      = fakeCall{"shell_output", `{"id":"job-1"}`, "(no new output)\nexit code: 0"}
	unknown    = fakeCall{"shell_output", `{"id":"job-7"}`, failed + "there is no such job"}
	missing    = fakeCall{"read", `{"path":"/workspace/x.go"}`, failed + "not found"}
	edit       = fakeCall{"edit", `{"old":"x","new":"y"}`, "edited"}
)

func TestFind(t *testing.T) {
	for name, tc := range samples() {
		t.Run(name, func(t *testing.T) {
			var k transcript
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
		build func(k *transcript)
		want  string
	}{
		"one tool":       {func(k *transcript) { k.times(4, func(int) { k.addTurn(ls) }) }, "calling ls gave the same result 4 times in a row, with the same arguments"},
		"several":        {func(k *transcript) { k.times(4, func(int) { k.addTurn(read, ls, read) }) }, "calling ls, read gave the same result 4 times in a row, with the same arguments"},
		"errors":         {func(k *transcript) { k.times(3, func(int) { k.addTurn(failedEdit) }) }, "calling edit failed 3 times in a row, with the same arguments"},
		"a long text":    {func(k *transcript) { k.times(3, func(int) { k.addText(long) }) }, `the same was said 3 times in a row and nothing was done: "` + long[:116] + `…"`},
		"taking turns":   {func(k *transcript) { k.times(3, func(int) { k.addTurn(ls); k.addTurn(read) }) }, "calling ls and read in turn gave the same results, 6 turns in all"},
		"summaries":      {func(k *transcript) { k.times(10, func(int) { k.addUser(step.NoteSummary) }) }, "the session was summarized 10 times in a row and nothing was done in between"},
		"failures":       {func(k *transcript) { k.times(7, func(i int) { k.addTurn(numbered(failedEdit, i%3)) }) }, "calling edit failed in 7 turns in a row, and nothing else was achieved"},
		"a hostile name": {func(k *transcript) { k.times(4, func(int) { k.addTurn(fakeCall{long, `{}`, ""}) }) }, "calling " + long[:116] + "… gave the same result 4 times in a row, with the same arguments"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var k transcript
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
	var k transcript
	k.addUserMessage()
	for i := range 500 {
		k.addTurn(fakeCall{"read", fmt.Sprintf(`{"path":"/workspace/%d.txt"}`, i), fmt.Sprint(i, strings.Repeat("x", 20_000))})
	}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = loopdetect.Find(k)
	}
}
