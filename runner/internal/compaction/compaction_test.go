package compaction_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/compaction"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

const clearedText = "(old result removed to make room; call again if it is needed)"

// A talk is a session under construction.
type transcript []step.Step

func (k *transcript) add(s step.Step, text string) *step.Step {
	s.Seq = int64(len(*k)) + 1
	s.Parts = append(s.Parts, step.Part{Kind: step.PartText, Text: text})
	*k = append(*k, s)
	return &(*k)[len(*k)-1]
}

func (k *transcript) user(text string) { k.add(step.Step{Role: step.RoleUser}, text) }

// turn is an assistant's step with a call for each result.
func (k *transcript) turn(results ...string) {
	s := k.add(step.Step{Role: step.RoleAssistant, Parts: []step.Part{{Kind: step.PartThinking, Text: "hm", Signature: "s"}}}, "I call")
	for i := range results {
		s.Calls = append(s.Calls, step.Call{ID: step.CallID("", s.Seq, i+1), Name: "read", Args: []byte(`{}`)})
	}
	calls := s.Calls
	for i, text := range results {
		k.add(step.Step{Role: step.RoleTool, Name: "read", CallID: calls[i].ID}, text)
	}
}

// tokens is a text of so many tokens.
func tokens(n int) string { return strings.Repeat("abc ", n) }

func TestTrigger(t *testing.T) {
	cases := map[string]struct{ window, maxOutput, want int64 }{
		"a common model":                           {200_000, 8_000, 162_000},
		"a large window is not used whole":         {1_000_000, 64_000, 170_000},
		"a small window":                           {32_768, 4_096, 23_756},
		"answers may take half of it":              {100_000, 50_000, 35_000},
		"answers may take most of it":              {100_000, 50_001, 50_000},
		"answers may take more than there is":      {4_096, 8_192, 2_048},
		"a window so large that most of it is too": {1 << 62, 1 << 61, 170_000},
		"answers without a bound that is known":    {100_000, 0, 85_000},
		"nothing is known":                         {0, 0, 108_800},
		"nonsense":                                 {-5, -7, 108_800},
		"a window of one":                          {1, 1, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := compaction.Trigger(tc.window, tc.maxOutput); got != tc.want {
				t.Errorf("Trigger(%d, %d) = %d, want %d", tc.window, tc.maxOutput, got, tc.want)
			}
		})
	}
}

func TestUsed(t *testing.T) {
	told := func(k transcript, at int, u step.Usage) transcript {
		k[at].Usage = u
		return k
	}
	session := func() transcript {
		var k transcript
		k.user("do it")
		k.turn(tokens(1000))
		k.turn(tokens(500))
		return k
	}
	estimate := func(req *model.Request) int64 { return model.EstimateInput(req) }
	usage := step.Usage{InputTokens: 7_000, OutputTokens: 300, CacheReadTokens: 6_000, ReasoningTokens: 100}
	cases := map[string]struct {
		steps transcript
		want  func(req *model.Request) int64
	}{
		"nothing was told yet": {session(), estimate},
		"told, and more came": {told(session(), 1, usage), func(req *model.Request) int64 {
			return 7_300 + estimate(&model.Request{Steps: req.Steps[2:]})
		}},
		"told twice: the last counts": {told(told(session(), 1, step.Usage{InputTokens: 1}), 3, usage), func(req *model.Request) int64 {
			return 7_300 + estimate(&model.Request{Steps: req.Steps[4:]})
		}},
		"told as the sum of several tries: the last counts": {
			told(session(), 3, step.Usage{InputTokens: 70_000, OutputTokens: 3_000, ContextTokens: 7_300})[:4], func(*model.Request) int64 { return 7_300 },
		},
		"told, and nothing came": {told(session(), 3, usage)[:4], func(*model.Request) int64 { return 7_300 }},
		"told before a summary": {
			append(told(session(), 3, usage), step.Step{Role: step.RoleUser, Note: step.NoteSummary}), estimate,
		},
		"told of a user's step is told by nobody": {told(session(), 0, usage), estimate},
		"no session": {nil, estimate},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := &model.Request{System: tokens(2000), Steps: tc.steps, Tools: []step.Tool{{Name: "read"}}}
			if got, want := compaction.Used(req), tc.want(req); got != want {
				t.Errorf("Used() = %d, want %d", got, want)
			}
		})
	}
}

func TestUsageReportedBeforeACompactionIsIgnored(t *testing.T) {
	var k transcript
	k.user("do it")
	for range 10 {
		k.turn(tokens(5000))
	}
	for i := range k {
		if k[i].Role == step.RoleAssistant {
			k[i].Usage = step.Usage{InputTokens: int64(i+1) * 5000, OutputTokens: 10}
		}
	}
	before := compaction.Used(&model.Request{Steps: k})
	for name, after := range map[string][]step.Step{
		"cleared":    compaction.Apply(k, compaction.Cut{Through: 15, Clear: true}, ""),
		"summarized": compaction.Apply(k, compaction.Cut{Through: 15}, "it went well"),
		"shrunk":     compaction.Shrink(k, 4),
	} {
		req := &model.Request{Steps: after}
		if got := compaction.Used(req); got != model.EstimateInput(req) || got >= before {
			t.Errorf("%s: Used() = %d, the estimate is %d, before it was %d", name, got, model.EstimateInput(req), before)
		}
	}
}

// What a plan takes out, told as the cut and the steps that are left.
func TestPlan(t *testing.T) {
	cases := map[string]struct {
		build         func(k *transcript)
		used, trigger int64
		want          string
	}{
		"clearing is enough": {
			build: func(k *transcript) { turns(k, 3, 12_000); turns(k, 3, 10) },
			used:  100_000, trigger: 100_000, want: "clear through 7",
		},
		"clearing would bring it just below the trigger": {
			build: func(k *transcript) { turns(k, 3, 8_000); turns(k, 3, 10) },
			used:  100_000, trigger: 100_000, want: "hide through 7",
		},
		"clearing is not worth it": {
			build: func(k *transcript) { turns(k, 3, 6_000); turns(k, 3, 10) },
			used:  70_500, trigger: 100_000, want: "hide through 7",
		},
		"what is large is kept": {
			build: func(k *transcript) { turns(k, 3, 10); turns(k, 3, 30_000) },
			used:  100_000, trigger: 100_000, want: "hide through 7",
		},
		"what was cleared before frees nothing": {
			build: func(k *transcript) {
				turns(k, 3, 12_000)
				turns(k, 3, 10)
				*k = compaction.Apply(*k, compaction.Cut{Through: 7, Clear: true}, "")
			},
			used: 100_000, trigger: 100_000, want: "hide through 7",
		},
		"a turn that begins before the last six is kept whole": {
			build: func(k *transcript) {
				turns(k, 2, 10)
				k.turn("1", "2", "3", "4", "5", "6", "7", "8")
				k.turn("9")
			},
			used: 100_000, trigger: 100_000, want: "hide through 5",
		},
		"all that there is belongs to one turn": {
			build: func(k *transcript) { k.turn("1", "2", "3", "4", "5", "6", "7", "8", "9") },
			used:  100_000, trigger: 100_000, want: "nothing",
		},
		"one turn fills the window: its first results are cleared": {
			build: func(k *transcript) {
				k.turn(slices.Repeat([]string{tokens(16_000)}, 10)...)
			},
			used: 160_000, trigger: 100_000, want: "clear through 6",
		},
		"so it is behind a summary": {
			build: func(k *transcript) {
				turns(k, 3, 10)
				*k = compaction.Apply(*k, compaction.Cut{Through: 7}, "so far so good")
				(*k)[1].Seq = 2
				k.turn(slices.Repeat([]string{tokens(16_000)}, 10)...)
			},
			used: 160_000, trigger: 100_000, want: "clear through 7",
		},
		"one turn whose first results are not worth it": {
			build: func(k *transcript) { k.turn(slices.Repeat([]string{tokens(3_000)}, 10)...) },
			used:  160_000, trigger: 10, want: "nothing",
		},
		"a short session": {
			build: func(k *transcript) { turns(k, 3, 90_000) },
			used:  100_000, trigger: 100_000, want: "nothing",
		},
		"only a summary is left": {
			build: func(k *transcript) {
				turns(k, 6, 10)
				*k = compaction.Apply(*k, compaction.Cut{Through: 7}, "so far so good")
			},
			used: 100_000, trigger: 10, want: "nothing",
		},
		"a summary and what came after it": {
			build: func(k *transcript) {
				turns(k, 6, 10)
				cut := transcript(compaction.Apply(*k, compaction.Cut{Through: 7}, "so far so good"))
				tail := cut[2:]
				for len(*k) < 17 {
					k.turn("more")
				}
				tail = append(tail, (*k)[13:]...)
				*k = append(cut[:2:2], tail...)
			},
			used: 100_000, trigger: 10, want: "hide through 11",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var k transcript
			k.user("do it")
			tc.build(&k)
			cut, ok := compaction.Plan(k, tc.used, tc.trigger)
			if diff := cmp.Diff(tc.want, planned(cut, ok)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	for _, steps := range [][]step.Step{nil, {{Seq: 1, Role: step.RoleUser}}} {
		if cut, ok := compaction.Plan(steps, 10, 1); ok {
			t.Errorf("Plan() of %d steps = %+v", len(steps), cut)
		}
	}
}

func turns(k *transcript, n, size int) {
	for range n {
		k.turn(tokens(size))
	}
}
