package mcp

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// A question is the request of the protocol in the body of an HTTP request.
type question struct {
	id     json.RawMessage // nil: there is none, or it expects no answer
	method string
}

// askedBy reads the body of a request.
func askedBy(req *http.Request) question {
	if req.GetBody == nil {
		return question{}
	}
	body, err := req.GetBody()
	if err != nil {
		return question{}
	}
	defer body.Close()
	text, _ := io.ReadAll(body)
	message := readObject(text)
	return question{id: message["id"], method: message.string("method")}
}

// isCall reports whether a request is made within a session. Those that begin one are
// refused by older servers, which the library finds out.
func (q question) isCall() bool {
	return len(q.id) > 0 && q.method != "" && q.method != "initialize" && q.method != "server/discover"
}

// errorIn returns the error of the protocol with which a body answers the request; nil:
// there is none. The ID may be written as a string.
func (q question) errorIn(body []byte) *jsonrpc.Error {
	message := readObject(body)
	failure := readObject(message["error"])
	id := strings.Trim(string(message["id"]), `"`)
	if failure == nil || len(q.id) == 0 || q.method == "server/discover" || id != strings.Trim(string(q.id), `"`) {
		return nil
	}
	answer := &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: failure.string("message"), Data: failure["data"]}
	var code int64
	if json.Unmarshal(failure["code"], &code) == nil && code != 0 {
		answer.Code = code
	}
	return answer
}

// answeredBy returns a response with an error in the form in which servers answer.
func (q question) answeredBy(resp *http.Response, failure *jsonrpc.Error) *http.Response {
	body := marshal(map[string]any{"jsonrpc": "2.0", "id": q.id, "error": failure})
	answer := *resp
	answer.StatusCode, answer.Status = http.StatusOK, http.StatusText(http.StatusOK)
	answer.Header = resp.Header.Clone()
	answer.Header.Set("Content-Type", "application/json")
	answer.Header.Del("Content-Length")
	answer.ContentLength = int64(len(body))
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return &answer
}
