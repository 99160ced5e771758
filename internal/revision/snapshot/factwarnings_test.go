package snapshot

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/listprices"
	"github.com/deckhand-dev/deckhand/internal/shared/modelfacts"
)

func TestSettingsThatContradictTheDocumentationAreWarnedOf(t *testing.T) {
	reasoning := func(level string) func(*v1alpha1.ModelSpec) {
		return func(s *v1alpha1.ModelSpec) { s.Inference = &v1alpha1.Inference{Reasoning: level} }
	}
	extra := func(text string) func(*v1alpha1.ModelSpec) {
		return func(s *v1alpha1.ModelSpec) {
			s.Inference = &v1alpha1.Inference{Extra: &runtime.RawExtension{Raw: []byte(text)}}
		}
	}
	output := func(most v1alpha1.Tokens) func(*v1alpha1.ModelSpec) {
		return func(s *v1alpha1.ModelSpec) { s.MaxOutputTokens = &most }
	}
	answer := func(most v1alpha1.Tokens) func(*v1alpha1.ModelSpec) {
		return func(s *v1alpha1.ModelSpec) { s.Inference = &v1alpha1.Inference{MaxOutputTokens: &most} }
	}
	const xai = "https://api.x.ai/v1"
	cases := map[string]struct {
		provider        v1alpha1.Provider
		model, endpoint string
		set             func(*v1alpha1.ModelSpec)
		want            string
	}{
		"longer answers than there are": {"Anthropic", "claude-haiku-4-5-20251001", "", output("100k"), "spec.maxOutputTokens: 100000 is more than the 64000 tokens that claude-haiku-4-5-20251001 returns at most (https://"},
		"the longest answers":           {"Anthropic", "claude-haiku-4-5", "", output("64k"), ""},
		"a request for longer answers":  {"DeepSeek", "deepseek-v4-pro", "", answer("500k"), "spec.inference.maxOutputTokens: 500000 is more than the 384000 tokens"},
		"longer answers than the Model says": {"OpenAICompatible", "own", "https://gateway.example/v1", func(s *v1alpha1.ModelSpec) {
			output("4k")(s)
			answer("5k")(s)
		}, "spec.inference.maxOutputTokens: 5000 is more than maxOutputTokens of the Model, 4000: write 4000, or remove it"},
		"no room for a request": {"OpenAI", "gpt-4", "", func(s *v1alpha1.ModelSpec) {
			s.ContextWindow = new(v1alpha1.Tokens("8k"))
			answer("300k")(s)
		}, "spec.inference.maxOutputTokens: 300000 leaves no room for a request in the context window of gpt-4, which has 8000 tokens"},
		"no room in a window that is known":  {"OpenAI", "gpt-4", "", output("300k"), "spec.maxOutputTokens: 300000 leaves no room"},
		"a window that is not known":         {"OpenAICompatible", "own", "https://gateway.example/v1", answer("300k"), ""},
		"a model that always reasons":        {"Anthropic", "claude-opus-5-5", "", reasoning("Off"), "spec.inference.reasoning: Off is no level of claude-opus-5-5 (https://"},
		"a level that it has":                {"Anthropic", "claude-opus-5-5", "", reasoning("Low"), ""},
		"a model before reasoning was off":   {"OpenAI", "gpt-5-mini-2025-08-07", "", reasoning("Off"), "write Low or Medium or High, or remove it"},
		"the first model without reasoning":  {"OpenAI", "gpt-5.1", "", reasoning("Off"), ""},
		"a level between":                    {"OpenAICompatible", "mistral-small-latest", "https://api.mistral.ai/v1", reasoning("Low"), `write "Off" or High, or remove it`},
		"a model without levels":             {"OpenAICompatible", "grok-4-0709", xai, reasoning("High"), "High is no level of grok-4-0709 (https://docs.x.ai/docs/guides/reasoning, read 2026-11-27): remove it"},
		"a parameter that is refused":        {"OpenAICompatible", "grok-4", xai, extra(`{"stop":["x"]}`), "spec.inference.extra.stop: grok-4 refuses it"},
		"a parameter that is taken":          {"OpenAICompatible", "grok-4", xai, extra(`{"seed":1}`), ""},
		"extra that is no object":            {"OpenAICompatible", "grok-4", xai, extra(`[1]`), ""},
		"a temperature that is refused":      {"Kimi", "kimi-k2.6", "", func(s *v1alpha1.ModelSpec) { s.Inference = &v1alpha1.Inference{Temperature: new(v1alpha1.Decimal)} }, "spec.inference.temperature: kimi-k2.6 refuses it"},
		"a topP that is refused":             {"Kimi", "kimi-k2.6", "", func(s *v1alpha1.ModelSpec) { s.Inference = &v1alpha1.Inference{TopP: new(v1alpha1.Decimal)} }, "spec.inference.topP: kimi-k2.6 refuses it"},
		"a model that is no longer served":   {"DeepSeek", "deepseek-chat", "", func(*v1alpha1.ModelSpec) {}, "spec.modelID: its provider no longer serves deepseek-chat (https://api-docs.deepseek.com/, read 2026-11-28): write deepseek-flash"},
		"a gateway that may still serve it":  {"OpenAICompatible", "deepseek-chat", "https://gateway.example/v1", func(*v1alpha1.ModelSpec) {}, ""},
		"a model that nobody documents":      {"OpenAI", "gpt-9", "", reasoning("Off"), ""},
		"a gateway, which may do otherwise":  {"OpenAICompatible", "gpt-5", "https://gateway.example/v1", reasoning("Off"), ""},
		"a fine-tuned model, which may, too": {"OpenAI", "ft:gpt-5:org::id", "", reasoning("Off"), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := v1alpha1.ModelSpec{Provider: tc.provider, ModelID: tc.model, Endpoint: tc.endpoint, APIKeySecretRef: &v1alpha1.SecretKeyRef{Name: "a", Key: "b"}}
			tc.set(&spec)
			if got := strings.Join(ModelWarnings(spec), "; "); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestAnAgentThatContradictsTheDocumentationOfItsModelsIsWarnedOf(t *testing.T) {
	model := func(id string, fallbacks ...v1alpha1.ObjectName) *v1alpha1.Model {
		return &v1alpha1.Model{Spec: v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAI, ModelID: id, Fallbacks: fallbacks}}
	}
	o := Objects{Models: map[string]*v1alpha1.Model{"new": model("gpt-5.4", "old", "gone"), "old": model("gpt-5")}}
	o.Models["new"].Spec.MaxOutputTokens = new(v1alpha1.Tokens("4k"))
	long := &v1alpha1.Agent{Spec: v1alpha1.AgentSpec{Model: "new", Inference: &v1alpha1.Inference{MaxOutputTokens: new(v1alpha1.Tokens("5k"))}}}
	if got := Warnings(long, o); len(got) != 1 || got[0] != "spec.inference.maxOutputTokens: 5000 is more than maxOutputTokens of Model new, 4000: write 4000, or remove it" {
		t.Errorf("warnings %q", got)
	}
	a := &v1alpha1.Agent{Spec: v1alpha1.AgentSpec{Model: "new", Inference: &v1alpha1.Inference{Reasoning: "Off"}}}
	if got := Warnings(a, o); len(got) != 1 || !strings.HasPrefix(got[0], "spec.inference.reasoning: Off is no level of gpt-5 of Model old (") {
		t.Errorf("warnings %q", got)
	}
}

// A recordedRequest is what the table says something about.
type recordedRequest struct {
	Host   string          `json:"host"`
	Status int             `json:"status"`
	Req    json.RawMessage `json:"req"`
	Raw    []byte          `json:"raw"`
}

// requestFields are those of all three APIs.
type requestFields struct {
	Model     string `json:"model"`
	Effort    string `json:"reasoning_effort"`
	Reasoning struct {
		Effort string `json:"effort"`
	} `json:"reasoning"`
	Output struct {
		Effort string `json:"effort"`
	} `json:"output_config"`
	Thinking struct {
		Type string `json:"type"`
	} `json:"thinking"`
	MaxTokens           int64 `json:"max_tokens"`
	MaxCompletionTokens int64 `json:"max_completion_tokens"`
	MaxOutputTokens     int64 `json:"max_output_tokens"`
}

// The table must not say that providers refuse what they took, nor leave out what they refused.
func TestFactsAgreeWithRecordedRequests(t *testing.T) {
	folder := os.Getenv("DECKHAND_RECORDINGS")
	if folder == "" {
		t.Skip("DECKHAND_RECORDINGS names no folder with recordings")
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.jsonl.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("files %v, error %v", files, err)
	}
	compared := 0
	for _, file := range files {
		for _, r := range recordedRequests(t, file) {
			var q requestFields
			_ = json.Unmarshal(r.Req, &q) // some are of another form
			row, known := modelfacts.Of(listprices.Sellers(v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAICompatible, Endpoint: "https://" + r.Host}), q.Model)
			if !known {
				continue
			}
			compared++
			for _, problem := range contradictions(row, r, q) {
				t.Errorf("%s, %s at %s: status %d, but %s", filepath.Base(file), q.Model, r.Host, r.Status, problem)
			}
		}
	}
	if compared < 100 {
		t.Errorf("%d requests were compared: the names of the table fit none", compared)
	}
}

func recordedRequests(t *testing.T, path string) []recordedRequest {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var out []recordedRequest
	lines := bufio.NewScanner(unzipped)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var r recordedRequest
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// contradictions returns what the table says otherwise than a provider did.
func contradictions(row modelfacts.Row, r recordedRequest, q requestFields) []string {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(r.Req, &fields) // some are of another form
	if r.Status != 200 {
		var refusal struct {
			Error struct{ Code, Param string }
		}
		_ = json.Unmarshal(r.Raw, &refusal)
		p := refusal.Error.Param
		if _, sent := fields[p]; sent && slices.Contains([]string{"unsupported_parameter", "unsupported_value"}, refusal.Error.Code) && !slices.Contains(row.Refused, p) {
			return []string{"the table does not list the refused parameter " + p}
		}
		return nil
	}
	var out []string
	body := strings.ReplaceAll(string(r.Req), " ", "")
	for _, part := range []string{`"type":"image_url"`, `"type":"image"`, `"type":"input_image"`} {
		if strings.Contains(body, part) && row.Images == modelfacts.No {
			out = append(out, "the table has no images")
		}
	}
	if strings.Contains(body, "application/pdf") && row.PDF == modelfacts.No {
		out = append(out, "the table has no PDFs")
	}
	if level := levelOf(q); level != "" && row.Levels != nil && !slices.Contains(row.Levels, level) {
		out = append(out, "the table has no level "+level)
	}
	if most := max(q.MaxTokens, q.MaxCompletionTokens, q.MaxOutputTokens); row.MaxOutput > 0 && most > row.MaxOutput {
		out = append(out, "the table has a lower limit of output")
	}
	for _, p := range row.Refused {
		if value, sent := fields[p]; sent && string(value) != "null" {
			out = append(out, "the table refuses "+p)
		}
	}
	return out
}

// levelOf returns the level of reasoning that a request asks for; empty: none, or one that Models do
// not have.
func levelOf(q requestFields) string {
	for _, effort := range []string{q.Effort, q.Reasoning.Effort, q.Output.Effort} {
		if level, has := map[string]string{"none": "Off", "low": "Low", "medium": "Medium", "high": "High"}[effort]; has {
			return level
		}
	}
	if q.Thinking.Type == "disabled" {
		return "Off"
	}
	return ""
}
