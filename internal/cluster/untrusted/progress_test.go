package untrusted_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/testing/untrustedtest"
	"github.com/deckhand-dev/deckhand/runner/task"
)

func TestCountsOfARunnerAreNeverNegativeOrEndless(t *testing.T) {
	low, cost := int64(-5), int64(math.MinInt64)
	got := untrusted.Progress(&v1alpha1.RunProgress{
		Counts: v1alpha1.Counts{Steps: low, ModelCalls: low, ToolCalls: low, ToolErrors: low, Errors: low},
		Usage:  v1alpha1.Usage{InputTokens: low, CacheReadTokens: low, CacheWriteTokens: low, OutputTokens: low, ReasoningTokens: low, TotalTokens: math.MaxInt64, CostMicroUSD: &cost, ChildTokens: &low, ChildCostMicroUSD: &cost, DurationSeconds: low},
		Step:   &v1alpha1.CurrentStep{ID: "s1\nc1"},
		Recent: []v1alpha1.RecentStep{{ID: "S1/../", DurationMs: low}},
		Result: &v1alpha1.Result{Files: []v1alpha1.File{{Size: low}}},
	})
	zero := int64(0)
	want := &v1alpha1.RunProgress{
		Usage:  v1alpha1.Usage{TotalTokens: v1alpha1.MaxUsage, CostMicroUSD: &zero, ChildTokens: &zero, ChildCostMicroUSD: &zero},
		Step:   &v1alpha1.CurrentStep{},
		Recent: []v1alpha1.RecentStep{{}},
		Result: &v1alpha1.Result{Files: []v1alpha1.File{{}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Progress() -want +got:\n%s", diff)
	}
	if cost != math.MinInt64 || low != -5 {
		t.Error("what was reported is changed")
	}
	word := untrusted.Termination(task.Termination{Counts: task.Counts{Steps: low}, Usage: task.Usage{TotalTokens: low, CostMicroUSD: &cost}, Result: task.Result{Message: "a\nb\u202e", Warning: "c\nd"}})
	if word.Counts.Steps != 0 || word.Usage.TotalTokens != 0 || *word.Usage.CostMicroUSD != 0 || word.Result.Message != `a b\u202e` || word.Result.Warning != "c d" {
		t.Errorf("Termination() = %+v", word)
	}
}

func TestRequestsWithBadIDsAreIgnored(t *testing.T) {
	cases := map[string]struct {
		id, digest string
		kept       bool
	}{
		"of a call":              {"s3c1", "", true},
		"of a limit":             {"limit-steps-1", "", true},
		"of an agent below":      {"s3c1.s2c1", "abc123", true},
		"empty":                  {"", "", false},
		"with a blank":           {"s3c1 with spec", "", false},
		"of another Run":         {"../x", "", false},
		"with a path of a patch": {"a~1b/c", "", false},
		"in capitals":            {"S3C1", "", false},
		"with a homoglyph":       {"s3\u04411", "", false},
		"with a line":            {"s3c1\nTo answer", "", false},
		"with zero width":        {"s3c1\u200b", "", false},
		"too long":               {string(make([]byte, 300)), "", false},
		"with a digest of words": {"s3c1", "abc (or type: Grant)", false},
	}
	shown := untrusted.Progress(&v1alpha1.RunProgress{Pending: []v1alpha1.PendingRequest{{ID: "s3c1", DisplayDigest: "abc (or type: Grant)"}, {ID: "s3c2", DisplayDigest: "abc123"}}})
	if len(shown.Pending) != 1 || shown.Pending[0].ID != "s3c2" {
		t.Errorf("requests with a digest of words for what is displayed: %+v", shown.Pending)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := untrusted.Progress(&v1alpha1.RunProgress{
				Pending: []v1alpha1.PendingRequest{{ID: tc.id, Digest: tc.digest}},
				Decided: []v1alpha1.DecidedRequest{{Name: "x." + tc.id, Request: tc.id, Digest: tc.digest}},
			})
			if (len(p.Pending) == 1) != tc.kept {
				t.Errorf("requests: %+v", p.Pending)
			}
			if tc.id != "" && (len(p.Decided) == 1) != tc.kept {
				t.Errorf("Decisions: %+v", p.Decided)
			}
		})
	}
}

// What is data goes on to who reads it as it was; what is shown is on one line.
func TestDataIsKeptAndMessagesAreLines(t *testing.T) {
	p := &v1alpha1.RunProgress{
		State: "Awaiting\u202eAnswer",
		Model: "m\x1b[31m",
		Pending: []v1alpha1.PendingRequest{{
			ID: "s3c1", Agent: "fi\u200bxer", Tool: "Ba\nsh", Question: "Line 1\nLine 2", Args: "{\"prompt\":\"a\u200db\"}", Schema: "{}", Approvers: &v1alpha1.Approvers{Groups: []string{"a\tb"}},
		}},
		Result: &v1alpha1.Result{Message: "failed:\nrm -rf /", Warning: "Check\nx", Text: "Line 1\nLine 2\u200d", Output: "{}", Files: []v1alpha1.File{{Path: "/workspace/\u202etxt"}}},
	}
	got := untrusted.Progress(p)
	want := p.DeepCopy()
	want.State, want.Model = `Awaiting\u202eAnswer`, `m\x1b[31m`
	want.Pending[0].Agent, want.Pending[0].Tool = `fi\u200bxer`, "Ba sh"
	want.Result.Message, want.Result.Warning, want.Result.Files[0].Path = "failed: rm -rf /", "Check x", `/workspace/\u202etxt`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Progress() -want +got:\n%s", diff)
	}
	if untrusted.Progress(nil) != nil {
		t.Error("nothing reported is something")
	}
}

// Only data, and what the schema limits to a list of values, stays as it was reported:
// every other string is one visible line, or what has it is left out.
func TestOnlyDataStaysRaw(t *testing.T) {
	stays := []string{
		".Confinement.Files", ".Confinement.Network", ".Confinement.Process", ".Decided.Type", ".Effects",
		".Pending.Approvers.Groups", ".Pending.Approvers.Users", ".Pending.Args", ".Pending.Question", ".Pending.Schema", ".Refused.Hosts.Reason", ".Result.Output", ".Result.Text",
	}
	isRaw := func(v any) bool { return untrustedtest.IsRaw(fmt.Sprintf("%+v", v)) }
	p := &v1alpha1.RunProgress{
		Step: &v1alpha1.CurrentStep{}, Recent: []v1alpha1.RecentStep{{}}, Confinement: &v1alpha1.Confinement{}, ModelWait: &v1alpha1.ModelWait{},
		Pending: []v1alpha1.PendingRequest{{ID: "s3c1", Kind: task.PendingQuestion, Approvers: &v1alpha1.Approvers{Groups: []string{"g"}, Users: []string{"u"}}}},
		Decided: []v1alpha1.DecidedRequest{{Name: "x.s3c1", Request: "s3c1"}},
		Result:  &v1alpha1.Result{Files: []v1alpha1.File{{}}, Published: &v1alpha1.Published{}},
		Refused: &v1alpha1.Refused{Hosts: []v1alpha1.RefusedHost{{}}},
	}
	var raw []string
	untrustedtest.EachString(p, "", func(path string) {
		got := untrusted.Progress(p)
		if isRaw(*got) || slices.ContainsFunc(got.Pending, func(p v1alpha1.PendingRequest) bool { return isRaw(p.Approvers.Names()) }) || isRaw(*got.Step) || isRaw(*got.ModelWait) || isRaw(*got.Confinement) || isRaw(*got.Refused) || isRaw(*got.Result) || isRaw(*got.Result.Published) {
			raw = append(raw, path)
		}
	})
	slices.Sort(raw)
	if diff := cmp.Diff(stays, raw); diff != "" {
		t.Errorf("raw in Progress() -want +got:\n%s", diff)
	}
	end, raw := &task.Termination{Result: task.Result{Files: []task.File{{}}}}, nil
	untrustedtest.EachString(end, "", func(path string) {
		if isRaw(untrusted.Termination(*end)) {
			raw = append(raw, path)
		}
	})
	slices.Sort(raw)
	if diff := cmp.Diff([]string{".Effects", ".Result.Output", ".Result.Text"}, raw); diff != "" {
		t.Errorf("raw in Termination() -want +got:\n%s", diff)
	}
}

func TestRequestsOfUnknownKindsAreIgnored(t *testing.T) {
	for kind, kept := range map[string]bool{
		"Approval": true, "Question": true, "Limit": true, "Delegation": true, "": true,
		"approval": false, "Other": false, "Question\u202e": false, "OK.\nRun x": false,
	} {
		p := untrusted.Progress(&v1alpha1.RunProgress{Pending: []v1alpha1.PendingRequest{{ID: "s3c1", Kind: kind}}})
		if (len(p.Pending) == 1) != kept {
			t.Errorf("kind %q: %+v", kind, p.Pending)
		}
	}
}
