package anthropic

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
)

// Bedrock offers the Messages API with its own operation, InvokeModelWithResponseStream. The model is in the path, the
// version of the API in the body, and each event of the answer is base64 in the payload of a frame.
// https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModelWithResponseStream.html

// bedrockVersion is the version of the API in the body of a request to Bedrock.
const bedrockVersion = "bedrock-2023-05-31"

// eventChunk is the name of a frame with an event of the Messages API.
const eventChunk = "chunk"

// invokePath returns the path of a request. The name of a model may be an ARN, with colons and
// slashes.
func invokePath(model string) string {
	return "/model/" + strings.ReplaceAll(url.PathEscape(model), ":", "%3A") + "/invoke-with-response-stream"
}

// unwrap replaces a frame by the event in it. Answers of a gateway may have events as lines, which stay.
func unwrap(received *httpapi.Event) error {
	if string(received.Name) != eventChunk {
		return nil
	}
	var payload struct {
		Bytes []byte `json:"bytes"`
	}
	if err := json.Unmarshal(received.Data, &payload); err != nil {
		return fmt.Errorf("decoding a frame: %w", err)
	}
	received.Name, received.Data = nil, payload.Bytes
	return nil
}
