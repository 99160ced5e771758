package openai_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/model/wiretest"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// oneFile has the same bytes for every digest.
type oneFile struct{}

func (oneFile) ReadFile(string) ([]byte, error) { return []byte("x"), nil }

// Servers refuse images with several statuses. The request is sent once more without them, and the
// repair has the words of the server. Users read of the images that they show.
func TestRefusedImagesAreLeftOut(t *testing.T) {
	cases := map[string]struct {
		status int
		body   string
	}{
		"vLLM, of a model without images":         {400, `{"error":{"message":"At most 0 image(s) may be provided in one prompt.","type":"BadRequestError","code":400}}`},
		"a router without a provider for them":    {404, `{"error":{"message":"No endpoints found that support image input","code":404}}`}, // https://github.com/NousResearch/hermes-agent/pull/23411
		"a server that validates the content":     {422, `{"detail":[{"loc":["body","messages",0,"content"],"msg":"Input should be a valid string"}]}`},
		"a gateway with a small bound of bodies":  {413, `{"error":{"message":"Request Entity Too Large"}}`},
		"a proxy with a small bound of bodies":    {413, "<html><head><title>413 Request Entity Too Large</title></head></html>"},
		"llama.cpp without a projector":           {500, `{"error":{"code":500,"message":"image input is not supported - hint: if this is unexpected, you may need to provide the mmproj","type":"server_error"}}`}, // https://github.com/ggml-org/llama.cpp/issues/15377
		"llama.cpp before it knew images":         {500, `{"error":{"code":500,"message":"Failed to parse messages: Unsupported content part type: \"image_url\"; messages = []","type":"server_error"}}`},          // https://github.com/ggml-org/llama.cpp/issues/12947
		"a server that does not implement images": {501, `{"error":{"message":"multimodal content is not implemented"}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := &model.Request{CacheKey: "s", Files: oneFile{}, Steps: []step.Step{wiretest.Says(step.RoleUser, "Look.")}}
			req.Steps[0].Seq = 1
			req.Steps[0].Parts = append(req.Steps[0].Parts, step.Part{Kind: step.PartImage, File: &step.File{Digest: "d", MediaType: "image/png", Width: 1, Height: 1}})
			m, sent := refusingImages(t, tc.status, tc.body)
			var because []string
			warning := ""
			_, err := model.Collect(m.Stream(t.Context(), req), func(d model.Delta) {
				warning += d.Warning
				if d.Repair != nil && d.Repair.Kind == model.RepairFiles {
					because = append(because, d.Because)
				}
			})
			if err != nil || *sent != 2 || len(because) != 1 || because[0] == "" {
				t.Errorf("%d requests are sent, the repairs are for %q: %v", *sent, because, err)
			}
			if !strings.HasPrefix(warning, "1 files that a user shows are not sent: the provider refused them") {
				t.Errorf("the warning is %q", warning)
			}
		})
	}
}

// refusingImages is a model that answers requests with an image so, and others with a text. It counts
// requests.
func refusingImages(t *testing.T, status int, body string) (m model.Model, sent *int) {
	t.Helper()
	sent = new(int)
	kind := "application/json"
	if strings.HasPrefix(body, "<") {
		kind = "text/html"
	}
	return at(t, wiretest.RoundTrip(func(r *http.Request) (*http.Response, error) {
		*sent++
		if asked, _ := io.ReadAll(r.Body); bytes.Contains(asked, []byte(`"image_url"`)) {
			return wiretest.Answering(status, kind, body)(r)
		}
		return wiretest.Answering(http.StatusOK, "application/json", `{"choices":[{"message":{"role":"assistant","content":"I see none."},"finish_reason":"stop"}]}`)(r)
	})), sent
}
