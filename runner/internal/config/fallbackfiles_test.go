package config_test

import (
	"bytes"
	"context"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A busyModel answers no request for an hour.
type busyModel struct{}

func (busyModel) Stream(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		yield(model.Delta{}, &model.RateLimitedError{RetryAfter: time.Hour})
	}
}

// A fallback whose model takes fewer files than the first Model is sent what it takes, and the result of
// the Run says which files the model that answered has not seen: on each wire.
func TestResultSaysWhichFilesAFallbackWasNotSent(t *testing.T) {
	wires := map[string]struct {
		model  task.Model
		answer string
	}{
		"chat completions": {task.Model{Provider: "Azure", API: "ChatCompletions"}, `{"choices":[{"message":{"role":"assistant","content":"done"},"finish_reason":"stop"}]}`},
		"Responses": {
			task.Model{Provider: "Azure", API: "Responses"},
			`{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"done"}]}]}`,
		},
		"Messages": {task.Model{Provider: "AnthropicCompatible"}, `{"type":"message","role":"assistant","content":[{"type":"text","text":"done"}],"stop_reason":"end_turn"}`},
	}
	cases := map[string]struct {
		model   string
		files   int
		image   string // the bytes of the first file; empty: those of a small one
		refuses bool   // the server refuses images
		want    string // of the warning, by a bound of its wire if it has one
		only    string // the wire; empty: each
	}{
		"a model without images":       {model: "gpt-4", files: 1, want: "1 of 1 files that a user shows are not sent, and the agent reads a line for each: Model second does not take them"},
		"a server that refuses images": {model: "house-model", files: 2, refuses: true, want: "2 files that a user shows are not sent: the provider refused them"},
		"more files than it takes":     {model: "gpt-5", files: 12, want: "2 of 12 files that a user shows are not sent", only: "Azure"},
		"a larger image than it takes": {
			model: "claude-sonnet-5", files: 1, image: strings.Replace(smallPNG, "\x00\x00\x00\x02", "\x00\x00\x1f\x41", 1),
			want: "1 of 1 files that a user shows are not sent", only: "AnthropicCompatible",
		},
	}
	for wire, w := range wires {
		for name, tc := range cases {
			if tc.only != "" && tc.only != w.model.Provider {
				continue
			}
			t.Run(wire+"/"+name, func(t *testing.T) {
				f := newFixer(t)
				addModel(t, f.registry, "busy", func(context.Context, registry.ModelSpec) (model.Model, error) { return busyModel{}, nil })
				for i := range tc.files {
					name := strings.Repeat("a", i+1) + ".png"
					f.put(name, smallPNG+name)
					f.parts.Task.Images = append(f.parts.Task.Images, name)
				}
				if tc.image != "" {
					f.put("a.png", tc.image)
				}
				second := w.model
				second.Name, second.Model, second.Endpoint = "second", tc.model, refusing(t, tc.refuses, w.answer)
				f.parts.Snapshot.Models[0].Driver = "busy"
				f.parts.Snapshot.Models = append(f.parts.Snapshot.Models, second)
				f.parts.Snapshot.Agent.Models = []string{"m", "second"}
				out := f.attempt()
				if out.Reason != task.ReasonFinished || !strings.HasPrefix(out.Warning, tc.want) {
					t.Errorf("ended %s %q with the warning %q, want %q", out.Reason, out.Message, out.Warning, tc.want)
				}
			})
		}
	}
}

// refusing is the address of a server that answers so. It may refuse images.
func refusing(t *testing.T, images bool, answer string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		if images && (bytes.Contains(asked, []byte(`image/png;base64`)) || bytes.Contains(asked, []byte(`"base64"`))) {
			w.WriteHeader(http.StatusBadRequest)
			answer := `{"error":{"type":"invalid_request_error","message":"this model takes no images"}}`
			_, _ = io.WriteString(w, answer)
			return
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	return server.URL
}
