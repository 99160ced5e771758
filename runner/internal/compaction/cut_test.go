package compaction_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/compaction"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

func planned(c compaction.Cut, ok bool) string {
	switch {
	case !ok:
		return "nothing"
	case c.Clear:
		return fmt.Sprintf("clear through %d", c.Through)
	}
	return fmt.Sprintf("hide through %d", c.Through)
}

// lines are a session, a line a step.
func lines(steps []step.Step) []string {
	var all []string
	for _, s := range steps {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%d %s %s %s", s.Seq, s.Role, s.Note, s.Text())))
	}
	return all
}

func example() transcript {
	var k transcript
	k.user("do it")
	k.turn(strings.Repeat("x", 100), "short")
	k.turn(strings.Repeat("y", 100))
	k.turn(strings.Repeat("z", 100))
	return k
}

func TestApplyClears(t *testing.T) {
	k := example()
	k[2].IsError = true
	want := example()
	want[2].IsError = true
	for _, i := range []int{2, 5} {
		want[i].Parts = []step.Part{{Kind: step.PartText, Text: clearedText}}
	}
	if diff := cmp.Diff([]step.Step(want), compaction.Apply(k, compaction.Cut{Through: 6, Clear: true}, "")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestApplySummarizes(t *testing.T) {
	k := example()
	got := compaction.Apply(k, compaction.Cut{Through: 6}, "read two files")
	want := []string{
		"1 user  do it",
		"6 user summary (The steps that were here are removed to make room. This is a summary of them, which you wrote yourself.)\n\nread two files",
		"7 assistant  I call",
		"8 tool  " + strings.Repeat("z", 100),
	}
	if diff := cmp.Diff(want, lines(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]step.Step(k[6:]), got[2:]); diff != "" {
		t.Errorf("what is kept is not as it was, -want +got:\n%s", diff)
	}
}

func TestApplyNeverPartsACallFromItsResults(t *testing.T) {
	got := compaction.Apply(example(), compaction.Cut{Through: 5}, "x") // through the call, not its result
	if diff := cmp.Diff([]int64{1, 5, 7, 8}, seqs(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestApplyHidesNothingWhereThereIsNothing(t *testing.T) {
	for name, steps := range map[string][]step.Step{"none": nil, "the first alone": example()[:1], "later ones": append(example()[:1:1], example()[4:]...)} {
		got := compaction.Apply(steps, compaction.Cut{Through: 2}, "x")
		if diff := cmp.Diff(seqs(steps), seqs(got)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

func seqs(steps []step.Step) []int64 {
	var all []int64
	for _, s := range steps {
		all = append(all, s.Seq)
	}
	return all
}

func TestShrinkBeginsInTheMiddle(t *testing.T) {
	var k transcript
	k.user("do it")
	turns(&k, 20, 100)
	for level, want := range []string{
		"....................",
		".........##.........",
		"........####........",
		".....##########.....",
		"####################",
	} {
		for _, l := range []int{level, level + 100*(level/4), level - 100*((4-level)/4)} { // beyond the ends too
			var got strings.Builder
			for _, s := range compaction.Shrink(k, l) {
				switch {
				case s.Text() == clearedText:
					got.WriteByte('#')
				case s.Role == step.RoleTool:
					got.WriteByte('.')
				}
			}
			if diff := cmp.Diff(want, got.String()); diff != "" {
				t.Errorf("level %d: -want +got:\n%s", l, diff)
			}
		}
	}
	if got := compaction.Shrink(k[:3], 1); got[2].Text() != clearedText {
		t.Error("a tenth of one result is none: the level did nothing")
	}
}

// random is a session as a model might have made it, with summaries and notes.
func random(r *rand.Rand) transcript {
	var k transcript
	k.user("do it")
	for range r.IntN(20) {
		switch r.IntN(8) {
		case 0:
			k.user(tokens(r.IntN(5000)))
		case 1:
			k.turn()
		default:
			results := make([]string, 1+r.IntN(9))
			for i := range results {
				results[i] = tokens(r.IntN(8000))
			}
			k.turn(results...)
		}
	}
	return k
}

// totalSize counts what a cut may take: steps that are no summary, and their text.
func totalSize(steps []step.Step) (n int64) {
	for _, s := range steps {
		if s.Note != step.NoteSummary {
			n += 1 + int64(len(s.Text()))
		}
	}
	return n
}

// Compacting any session, again and again: it ends, and at each step calls have
// their results, the first and the last steps are there, what is left is less
// and in order, and applying the cut again changes nothing.
func TestCompactingKeepsWhatMustStay(t *testing.T) {
	for seed := range uint64(80) {
		r := rand.New(rand.NewPCG(seed, 0))
		steps := []step.Step(random(r))
		trigger := int64(1 + r.IntN(60_000))
		for round := 0; ; round++ {
			before := slices.Clone(steps)
			cut, ok := compaction.Plan(steps, model.EstimateInput(&model.Request{Steps: steps}), trigger)
			if !ok {
				break
			}
			after := compaction.Apply(steps, cut, "summary")
			if diff := cmp.Diff(before, steps); diff != "" {
				t.Fatalf("seed %d: the session was changed in place:\n%s", seed, diff)
			}
			if diff := cmp.Diff(after, compaction.Apply(after, cut, "summary")); diff != "" {
				t.Fatalf("seed %d: the cut changes something when it is applied again:\n%s", seed, diff)
			}
			checkCut(t, before, after)
			if t.Failed() || round > 3 {
				t.Fatalf("seed %d, round %d: %+v of\n%s\nis\n%s", seed, round, cut, brief(before), brief(after))
			}
			steps = after
		}
		for level := range compaction.ShrinkLevels {
			checkPairs(t, compaction.Shrink(steps, level))
		}
	}
}

func checkCut(t *testing.T, before, after []step.Step) {
	t.Helper()
	checkPairs(t, after)
	if totalSize(after) >= totalSize(before) {
		t.Errorf("the size was %d and is %d", totalSize(before), totalSize(after))
	}
	if diff := cmp.Diff(before[0], after[0]); diff != "" {
		t.Errorf("the first step:\n%s", diff)
	}
	n := min(6, len(before)-1)
	if diff := cmp.Diff(before[len(before)-n:], after[len(after)-n:]); diff != "" {
		t.Errorf("the last steps:\n%s", diff)
	}
	if !slices.IsSortedFunc(after, func(a, b step.Step) int { return int(a.Seq - b.Seq) }) {
		t.Errorf("out of order: %v", seqs(after))
	}
}

// checkPairs sees to it that each call is followed by its results, and each
// result follows its call.
func checkPairs(t *testing.T, steps []step.Step) {
	t.Helper()
	var open []string
	for _, s := range steps {
		if s.Role == step.RoleTool {
			if len(open) == 0 || open[0] != s.CallID {
				t.Errorf("the result %d answers %s; open are %v", s.Seq, s.CallID, open)
				return
			}
			open = open[1:]
			continue
		}
		if len(open) > 0 {
			t.Errorf("step %d comes before the results of %v", s.Seq, open)
		}
		open = nil
		for _, c := range s.Calls {
			open = append(open, c.ID)
		}
	}
	if len(open) > 0 {
		t.Errorf("nothing answers %v", open)
	}
}

func brief(steps []step.Step) string {
	var b strings.Builder
	for _, s := range steps {
		fmt.Fprintf(&b, "%d %s %s %d bytes %d calls\n", s.Seq, s.Role, s.Note, len(s.Text()), len(s.Calls))
	}
	return b.String()
}

// The question asked before every model call, of a session of 1,000 turns.
func BenchmarkUsed(b *testing.B) {
	var k transcript
	k.user("do it")
	turns(&k, 1000, 500)
	k[len(k)-2].Usage = step.Usage{InputTokens: 100_000, OutputTokens: 100}
	for name, steps := range map[string]transcript{"told by the last answer": k, "estimated": k[:len(k)-2]} {
		b.Run(name, func(b *testing.B) {
			req := &model.Request{System: "You are an agent.", Steps: steps}
			b.ReportAllocs()
			for b.Loop() {
				_ = compaction.Used(req)
			}
		})
	}
}
