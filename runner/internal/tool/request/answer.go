package request

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/deckhand-dev/deckhand/internal/shared/quote"
	"github.com/deckhand-dev/deckhand/runner/internal/address"
	"github.com/deckhand-dev/deckhand/runner/internal/callreport"
	"github.com/deckhand-dev/deckhand/runner/internal/dialerror"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/auth"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

const (
	// maxBody is how many bytes of a response are read, decompressed.
	maxBody = 256 << 10
	// maxExcerpt is how much of an error response is shown.
	maxExcerpt = 8 << 10
)

// An answer is the response of a server.
type answer struct {
	status string
	code   int
	media  string
	text   string
	cut    bool   // there is more than was read
	broken string // why the rest did not come
}

// read reads a response. An error while reading is part of the answer, because the request already had its effect.
func read(resp *http.Response) answer {
	a := answer{status: word(resp.Status), code: resp.StatusCode, media: word(resp.Header.Get("Content-Type"))}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if a.cut = len(body) > maxBody; a.cut {
		body = quote.WholeRunes(body[:maxBody])
	} else if err != nil {
		a.broken = word(err.Error())
	}
	if utf8.Valid(body) && !strings.Contains(string(body), "\x00") {
		a.text = string(body)
	} else {
		a.text = fmt.Sprintf("[the body is not shown: it is no text, but %s, %d bytes]", orUnknown(a.media), len(body))
	}
	return a
}

func orUnknown(media string) string {
	if media == "" {
		return "of no type"
	}
	return media
}

// result returns the response for the model. remedy is what the owner of the Toolset can do if the server refused the
// credentials.
func (a answer) result(effect tool.Effect, remedy string) tool.Result {
	text := "HTTP " + a.status
	body, cut := a.text, a.cut
	failed := a.code < 200 || a.code > 299
	if failed && len(body) > maxExcerpt {
		body, cut = string(quote.WholeRunes([]byte(body[:maxExcerpt]))), true
	}
	if body != "" {
		text += "\n\n" + body
	}
	switch {
	case cut:
		text += fmt.Sprintf("\n[cut: the first %d KiB; there is more]", len(body)>>10)
	case a.broken != "":
		text += "\n[the rest did not come: " + a.broken + "]"
	}
	if failed {
		return tool.Fail(text, advice(a.code, effect, remedy)...)
	}
	return tool.Result{Text: text, Summary: "HTTP " + a.status}
}

// advice returns what to do about a failure.
func advice(code int, effect tool.Effect, remedy string) []string {
	switch {
	case remedy != "":
		return []string{"The server refused access. Only the owner of the agent can correct this: " + remedy + "."}
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable:
		return []string{"Try it once more later."}
	case code >= http.StatusInternalServerError && effect != tool.ReadOnly:
		return []string{partly}
	}
	return nil
}

const partly = "What it was to change may have changed nevertheless: look before you repeat it."

// unanswered describes why there is no response.
func (s *sender) unanswered(req *http.Request, err error) tool.Result {
	var (
		addr     *address.RefusedError
		redirect *auth.RedirectError
		cred     *auth.CredentialError
		dial     *net.OpError
		wrap     *url.Error
	)
	host := word(req.URL.Host)
	switch {
	case errors.As(err, &redirect):
		return tool.Fail(fmt.Sprintf("%s was asked and answered, but %s", host, word(redirect.Error())))
	case errors.As(err, &addr):
		return tool.Fail(fmt.Sprintf("%s was not asked: %v", host, addr), "That is for the owner of this agent to change.")
	case errors.As(err, &cred):
		return tool.Fail(fmt.Sprintf("%s was not asked: %s", host, word(cred.Error())), "That is for the owner of this agent to change.")
	case errors.As(err, &dial) && dial.Op == "dial":
		callreport.SetUnreachable(req.Context(), word(dialerror.Cause(err)))
		return tool.Fail(fmt.Sprintf("%s cannot be reached: %s", host, word(dial.Error())), "Nothing was done. Try it once more later.")
	}
	if errors.As(err, &wrap) {
		err = wrap.Err
	}
	if s.changes() {
		return tool.Fail(fmt.Sprintf("%s gave no answer: %s", host, word(err.Error())), partly)
	}
	return tool.Fail(fmt.Sprintf("%s gave no answer: %s", host, word(err.Error())), "Try it once more later.")
}

// word returns an external text as part of one of our lines.
func word(s string) string { return quote.Line(s, 300) }
