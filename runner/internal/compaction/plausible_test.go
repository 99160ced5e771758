package compaction_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/compaction"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// A report is what a server says of the input of a request that has size tokens, of which
// more came since the last one.
type report func(size, more int64) int64

// reporting is a session of ten turns whose usage a server reports.
func reporting(r report, result int) *model.Request {
	var k transcript
	k.user("do it")
	sent := int64(0)
	for range 10 {
		size := model.EstimateInput(&model.Request{System: tokens(1000), Steps: k})
		at := len(k)
		k.turn(tokens(result))
		k[at].Usage = step.Usage{InputTokens: r(size, size-sent), OutputTokens: 2}
		sent = size
	}
	return &model.Request{System: tokens(1000), Steps: k}
}

func TestAUsageThatCannotBeTrueIsNotUsed(t *testing.T) {
	for name, tc := range map[string]struct {
		report   report
		believed bool
	}{
		"our own estimate":                   {func(size, _ int64) int64 { return size }, true},
		"a tokenizer that makes fewer":       {func(size, _ int64) int64 { return size * 2 / 3 }, true},
		"a tokenizer that makes more":        {func(size, _ int64) int64 { return size * 2 }, true},
		"what a template adds":               {func(size, _ int64) int64 { return size + 3000 }, true},
		"only what is new":                   {func(_, more int64) int64 { return more }, false},
		"a number that stays":                {func(int64, int64) int64 { return 100 }, false},
		"a large number that stays":          {func(int64, int64) int64 { return 50_000 }, false},
		"a tenth":                            {func(size, _ int64) int64 { return size / 10 }, false},
		"all but what it keeps in its cache": {func(size, _ int64) int64 { return size - size*3/4 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			req := reporting(tc.report, 1000)
			estimate := model.EstimateInput(req)
			last := req.Steps[len(req.Steps)-2].Usage.Context()
			want := estimate
			if tc.believed {
				want = last + model.EstimateInput(&model.Request{Steps: req.Steps[len(req.Steps)-1:]})
			}
			if diff := cmp.Diff(want, compaction.Used(req)); diff != "" {
				t.Errorf("Used() -want +got:\n%s\nthe estimate is %d", diff, estimate)
			}
		})
	}
}

// Providers drop the reasoning of earlier turns, so it counts neither in the size nor in the
// growth of a session.
func TestAUsageWithoutReasoningIsBelieved(t *testing.T) {
	req := reporting(func(size, _ int64) int64 { return size }, 1000)
	for i := range req.Steps {
		if req.Steps[i].Role == step.RoleAssistant {
			req.Steps[i].Parts[0].Text = tokens(5000)
		}
	}
	if used := compaction.Used(req); used > model.EstimateInput(req)/2 {
		t.Errorf("Used() = %d, and the estimate with reasoning is %d", used, model.EstimateInput(req))
	}
}

func TestTheFirstUsageIsBelievedUnlessItIsFarBelowTheEstimate(t *testing.T) {
	for percent, believed := range map[int64]bool{1: false, 49: false, 51: true, 100: true, 300: true} {
		var k transcript
		k.user(tokens(1000))
		k.turn()
		size := model.EstimateInput(&model.Request{Steps: k[:1]})
		k[1].Usage = step.Usage{InputTokens: size * percent / 100}
		req := &model.Request{Steps: k}
		want := model.EstimateInput(req)
		if believed {
			want = k[1].Usage.Context()
		}
		if got := compaction.Used(req); got != want {
			t.Errorf("%d percent: Used() = %d, want %d", percent, got, want)
		}
	}
}

func TestExceeds(t *testing.T) {
	for name, tc := range map[string]struct {
		estimate, window, maxOutput int64
		want                        bool
	}{
		"it fits with its answer":             {7168, 8192, 1024, false},
		"it does not":                         {7169, 8192, 1024, true},
		"its answer may be shorter":           {170_000, 200_000, 64_000, false},
		"answers may take more than there is": {4000, 4096, 8192, true},
		"a window that is not known":          {128_001, 0, 0, true},
		"a request that fits one not known":   {127_000, 0, 1000, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := compaction.Exceeds(tc.estimate, tc.window, tc.maxOutput); got != tc.want {
				t.Errorf("Exceeds() = %t, want %t", got, tc.want)
			}
		})
	}
}

func TestPlanRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		build func(k *transcript)
		want  string
	}{
		"clearing is enough":                   {func(k *transcript) { turns(k, 6, 500) }, "clear through 7"},
		"clearing is not enough":               {func(k *transcript) { turns(k, 3, 10); turns(k, 3, 500) }, "hide through 7"},
		"there is nothing before the last six": {func(k *transcript) { turns(k, 3, 500) }, "clear through 5"},
		"there is one result":                  {func(k *transcript) { turns(k, 1, 500) }, "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			var k transcript
			k.user("do it")
			tc.build(&k)
			used := model.EstimateInput(&model.Request{Steps: k})
			cut, ok := compaction.PlanRefused(k, used, used/4*3)
			if diff := cmp.Diff(tc.want, planned(cut, ok)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestPlanTighter(t *testing.T) {
	for name, tc := range map[string]struct {
		build func(k *transcript)
		want  string
	}{
		"the results before the last turn":     {func(k *transcript) { turns(k, 3, 1000) }, "clear through 5"},
		"texts before the last turn":           {func(k *transcript) { turns(k, 3, 1) }, "hide through 5"},
		"half of the results of the only turn": {func(k *transcript) { k.turn(tokens(500), tokens(500), tokens(500), tokens(500)) }, "clear through 4"},
		"half of those that are left": {func(k *transcript) {
			k.turn(tokens(500), tokens(500), tokens(500), tokens(500))
			*k = compaction.Apply(*k, compaction.Cut{Through: 4, Clear: true}, "")
		}, "clear through 5"},
		"never the only result":     {func(k *transcript) { k.turn(tokens(500)) }, "nothing"},
		"never the only message":    {func(*transcript) {}, "nothing"},
		"a summary makes no room":   {func(k *transcript) { turns(k, 3, 1); *k = compaction.Apply(*k, compaction.Cut{Through: 5}, "s") }, "nothing"},
		"a message behind the turn": {func(k *transcript) { turns(k, 2, 1000); k.user("go on") }, "clear through 3"},
	} {
		t.Run(name, func(t *testing.T) {
			var k transcript
			k.user("do it")
			tc.build(&k)
			cut, ok := compaction.PlanTighter(k)
			if diff := cmp.Diff(tc.want, planned(cut, ok)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if after := compaction.Apply(k, cut, "s"); ok && model.EstimateInput(&model.Request{Steps: after}) >= model.EstimateInput(&model.Request{Steps: k})+20 {
				t.Error("it does not make room")
			}
		})
	}
}
