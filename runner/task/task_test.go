package task_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

func TestMoney(t *testing.T) {
	for micro, want := range map[int64]string{
		0: "0.00USD", 420_000: "0.42USD", 1_500_000: "1.50USD", 1: "0.000001USD", 12_000_100: "12.0001USD", 123_456_789: "123.456789USD",
	} {
		if got := task.Money(micro); got != want {
			t.Errorf("Money(%d) = %s, want %s", micro, got, want)
		}
	}
}

func TestUsageOf(t *testing.T) {
	m := step.Meter{Usage: step.Usage{InputTokens: 100, CacheReadTokens: 60, OutputTokens: 5, CostMicroUSD: 420_000, Priced: true}, DurationSeconds: 7}
	cost := int64(420_000)
	want := task.Usage{InputTokens: 100, CacheReadTokens: 60, OutputTokens: 5, TotalTokens: 45, Cost: "0.42USD", CostMicroUSD: &cost, Duration: "7s", DurationSeconds: 7}
	if diff := cmp.Diff(want, task.UsageOf(m)); diff != "" {
		t.Errorf("UsageOf -want +got:\n%s", diff)
	}
	m = m.PlusChildRun(step.Usage{InputTokens: 30, CacheReadTokens: 10, OutputTokens: 2, CostMicroUSD: 80_000, Priced: true})
	if got := task.UsageOf(m); got.TotalTokens != 67 || *got.ChildTokens != 22 || *got.CostMicroUSD != 500_000 || *got.ChildCostMicroUSD != 80_000 {
		t.Errorf("with a child Run: %d tokens of which %d, %d of which %d", got.TotalTokens, *got.ChildTokens, *got.CostMicroUSD, *got.ChildCostMicroUSD)
	}
	m.ChildTokens, m.Usage.Priced = 1<<50, false
	if got := task.UsageOf(m); *got.ChildTokens != 999_999_999_999 {
		t.Errorf("%d tokens of child Runs are reported, which the schema refuses", *got.ChildTokens)
	}
	if got := task.UsageOf(m); got.Cost != "" || got.CostMicroUSD != nil || *got.ChildCostMicroUSD != 80_000 {
		t.Errorf("an unknown cost is shown as %q, and %d of child Runs", got.Cost, *got.ChildCostMicroUSD)
	}
}

// A provider may report any numbers. The schema refuses those beyond its bounds, and with them the
// whole report.
func TestUsageOfAnyNumbers(t *testing.T) {
	const most = 999_999_999_999
	many, none, top := step.Usage{Priced: true}, int64(0), int64(most)
	for _, n := range []*int64{&many.InputTokens, &many.CacheWriteTokens, &many.OutputTokens, &many.ReasoningTokens, &many.CostMicroUSD} {
		*n = 1 << 60
	}
	want := task.Usage{InputTokens: most, CacheWriteTokens: most, OutputTokens: most, ReasoningTokens: most, TotalTokens: most, Cost: "999999.999999USD", CostMicroUSD: &top}
	if diff := cmp.Diff(want, task.UsageOf(step.Meter{Usage: many})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	less := step.Usage{InputTokens: -1, OutputTokens: -1, CostMicroUSD: -1, Priced: true}
	if diff := cmp.Diff(task.Usage{Cost: "0.00USD", CostMicroUSD: &none}, task.UsageOf(step.Meter{Usage: less})); diff != "" {
		t.Errorf("less than nothing: -want +got:\n%s", diff)
	}
}

// What a child Run says that it used is charged as it was measured, and never
// lowers what is known.
func TestCharged(t *testing.T) {
	used := step.Meter{Usage: step.Usage{InputTokens: 100, CacheReadTokens: 60, CacheWriteTokens: 3, OutputTokens: 5, ReasoningTokens: 2, CostMicroUSD: 7, Priced: true}}
	cost, less := int64(1)<<60, int64(-1)
	cases := map[string]struct {
		in   task.Usage
		want step.Usage
	}{
		"what was measured":              {task.UsageOf(used), used.Usage},
		"nothing":                        {task.Usage{DurationSeconds: 9}, step.Usage{}},
		"a cost that is not known":       {task.Usage{InputTokens: 1}, step.Usage{InputTokens: 1}},
		"less than nothing":              {task.Usage{InputTokens: -1, OutputTokens: -5, CostMicroUSD: &less}, step.Usage{Priced: true}},
		"more read from a cache than is": {task.Usage{InputTokens: 5, CacheReadTokens: 50}, step.Usage{InputTokens: 5, CacheReadTokens: 5}},
		"more than there is":             {task.Usage{OutputTokens: 1 << 60, CostMicroUSD: &cost}, step.Usage{OutputTokens: 999_999_999_999, CostMicroUSD: 999_999_999_999, Priced: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.in.Charged()); diff != "" {
				t.Errorf("Charged() -want +got:\n%s", diff)
			}
		})
	}
}

// Nobody has to know of delegations to read what is said without any.
func TestSignalsOfChildren(t *testing.T) {
	child := task.Child{Request: "s2c1", Run: "x-s2c1", Reason: task.ReasonFinished, Output: `{"a":1}`}
	data, err := json.Marshal(task.Signals{Children: []task.Child{child}})
	if err != nil {
		t.Fatal(err)
	}
	var got task.Signals
	if err := json.Unmarshal(data, &got); err != nil || cmp.Diff([]task.Child{child}, got.Children) != "" {
		t.Errorf("%s is read as %+v (%v)", data, got.Children, err)
	}
	if data, err = json.Marshal(task.Signals{}); err != nil || string(data) != "{}" {
		t.Errorf("nothing is said as %s (%v)", data, err)
	}
}

func TestMeterMaxNeverFalls(t *testing.T) {
	a := step.Meter{Steps: 3, ToolCalls: 1, Usage: step.Usage{InputTokens: 10}, DurationSeconds: 5, ChildTokens: 7}
	b := step.Meter{Steps: 2, ToolCalls: 4, Usage: step.Usage{InputTokens: 20, OutputTokens: 1}, ChildTokens: 6, ChildCostMicroUSD: 2}
	want := step.Meter{Steps: 3, ToolCalls: 4, Usage: step.Usage{InputTokens: 20, OutputTokens: 1}, DurationSeconds: 5, ChildTokens: 7, ChildCostMicroUSD: 2}
	if a.Max(b) != want || b.Max(a) != want {
		t.Errorf("Max: %+v and %+v, want %+v", a.Max(b), b.Max(a), want)
	}
}

func TestEnd(t *testing.T) {
	err := fmt.Errorf("working: %w", task.End(task.ReasonMisconfigured, "Model %s: %w", "m", io.EOF))
	var end *task.EndError
	if !errors.As(err, &end) || end.Message != "Model m: EOF" || !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
}

func TestEveryReasonHasACode(t *testing.T) {
	want := map[task.Reason]int{
		task.ReasonFinished: 0, task.ReasonStepLimit: 76, task.ReasonTokenLimit: 76, task.ReasonCostLimit: 76, task.ReasonDurationLimit: 76,
		task.ReasonContextTooLong: 76, task.ReasonRejected: 65, task.ReasonStopped: 65, task.ReasonModelUnavailable: 69, task.ReasonInvalidOutput: 65,
		task.ReasonRunnerFailed: 1, task.ReasonStorageFull: 65, task.ReasonSecretMissing: 78, task.ReasonMisconfigured: 78,
		task.ReasonInterrupted: 143, task.ReasonFenced: 77, "Unheard": 1,
	}
	for reason, code := range want {
		if got := task.ExitCode(reason); got != code {
			t.Errorf("ExitCode(%s) = %d, want %d", reason, got, code)
		}
	}
}

func TestCut(t *testing.T) {
	cases := map[string]struct {
		in    string
		limit int
		want  string
	}{
		"what fits stays":                  {"abc", 3, "abc"},
		"what does not is marked":          {"abcdefgh", 6, "abc…"},
		"a character is never split":       {"ééééé", 8, "éé…"},
		"bytes that are no text are shown": {"a\xffb", 10, "a�b"},
		"NUL is dropped":                   {"a\x00b", 10, "ab"},
		"nothing fits":                     {"abc", 2, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := task.Cut(tc.in, tc.limit); got != tc.want || len(got) > tc.limit {
				t.Errorf("Cut(%q, %d) = %q, want %q", tc.in, tc.limit, got, tc.want)
			}
		})
	}
}

func TestWhatATerminationGivesUpFirst(t *testing.T) {
	many := make([]task.File, task.MaxFiles)
	for i := range many {
		many[i] = task.File{Path: strings.Repeat("p", task.MaxPath)}
	}
	cases := map[string]struct {
		result                  task.Result
		keepsFiles, keepsOutput bool
		text                    int
		says                    string
	}{
		"nothing when all fits":              {task.Result{Output: "{}", Text: "ok", Files: many[:1]}, true, true, 2, ""},
		"the files before the text":          {task.Result{Output: "{}", Text: strings.Repeat("x", 1000), Files: many}, false, true, 1000, ""},
		"the text before the output":         {task.Result{Output: strings.Repeat("1", 3500), Text: strings.Repeat("x", 1000), Files: many}, false, true, 0, ""},
		"the output at last, and it says so": {task.Result{Output: strings.Repeat("1", 5000), Text: "ok", Message: "m"}, false, false, 2, "The output has 5000 bytes and does not fit here. m"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got task.Termination
			if err := json.Unmarshal(task.Termination{Result: tc.result}.Encode(), &got); err != nil {
				t.Fatal(err)
			}
			r := got.Result
			if len(r.Files) > 0 != tc.keepsFiles || r.Output != "" != tc.keepsOutput || len(r.Text) != tc.text || r.Message != tc.says {
				t.Errorf("%d files, output of %d bytes, text of %d bytes, message %q", len(r.Files), len(r.Output), len(r.Text), r.Message)
			}
		})
	}
}

func TestATerminationAlwaysFits(t *testing.T) {
	for _, text := range []string{"", "x", strings.Repeat("\"", task.MaxText), strings.Repeat("☃", task.MaxText/3)} {
		last := task.Termination{Result: task.Result{
			Reason: task.ReasonFinished, Text: text, Message: task.Cut(text, task.MaxMessage), Output: text,
			Files: []task.File{{Path: strings.Repeat("p", 200)}},
		}}
		if got := len(last.Encode()); got > task.MaxTermination {
			t.Errorf("%d bytes of text: the message has %d bytes", len(text), got)
		}
	}
}
