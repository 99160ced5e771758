package modeltest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/internal/model/frametest"
)

// invoke is the end of the path of a request to Bedrock.
const invoke = "/invoke-with-response-stream"

// bedrock is the API of Messages in the form of Bedrock: the model is in the path, and the answer is a stream of
// frames.
var bedrock = &wire{
	read:       readInvoke,
	check:      checkInvoke,
	keys:       func(h http.Header) []string { return []string{h.Get("Authorization")} },
	render:     renderFrames,
	failure:    func(_ int, message string) map[string]any { return map[string]any{"message": message} },
	marksCache: true,
	framed:     true,
}

// readInvoke sets the fields of a Request from its body and path. The name of the model is one segment of the path, in
// which Amazon requires colons and slashes to be escaped.
func readInvoke(r *Request) error {
	if err := readMessages(r); err != nil {
		return err
	}
	_, segment, _ := strings.Cut(strings.TrimSuffix(r.path, invoke), "/model/")
	if segment == "" || strings.ContainsAny(segment, "/:") {
		return fmt.Errorf("the path %s has no escaped name of a model", r.path)
	}
	var err error
	r.Model, err = url.PathUnescape(segment)
	r.Stream = true
	return err
}

// checkInvoke refuses what Bedrock and other strict providers refuse.
func checkInvoke(r Request) error {
	var body map[string]json.RawMessage
	if err := json.Unmarshal(r.Raw, &body); err != nil {
		return err
	}
	for _, field := range []string{"model", "stream"} {
		if body[field] != nil {
			return fmt.Errorf("%s: Extra inputs are not permitted", field)
		}
	}
	if string(body["anthropic_version"]) != `"bedrock-2023-05-31"` {
		return errors.New("anthropic_version: Field required")
	}
	return r.strict.check()
}

// renderFrames puts each event of the wire of Messages into a frame. Bedrock sends no pings.
func renderFrames(r Request, t Turn) playback {
	p := renderMessages(r, t)
	p.contentType = frametest.ContentType
	var chunks [][]byte
	for _, event := range p.chunks {
		_, data, _ := bytes.Cut(event, []byte("\ndata: "))
		if bytes.HasPrefix(event, []byte("event: ping\n")) {
			continue
		}
		chunks = append(chunks, frametest.Event("chunk", encode(map[string]any{"bytes": bytes.TrimSpace(data), "p": "ab"})))
	}
	p.chunks = chunks
	return p
}

// exceptions are the names of errors by their status.
var exceptions = map[int]string{
	http.StatusBadRequest: "ValidationException", http.StatusUnauthorized: "UnrecognizedClientException",
	http.StatusForbidden: "AccessDeniedException", http.StatusNotFound: "ResourceNotFoundException",
	http.StatusTooManyRequests: "ThrottlingException", http.StatusServiceUnavailable: "ServiceUnavailableException",
	http.StatusFailedDependency: "ModelStreamErrorException",
}

func exceptionOf(status int) string {
	if name := exceptions[status]; name != "" {
		return name
	}
	return "InternalServerException"
}

// exception returns the frame of an error within a stream, in which the name of the error begins with a small letter.
func (f Fault) exception() string {
	name := exceptionOf(f.status())
	return string(frametest.Exception(strings.ToLower(name[:1])+name[1:], []byte(f.body(bedrock))))
}
