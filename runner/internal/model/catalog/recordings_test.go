package catalog

import (
	"encoding/json"
	"regexp"
	"strconv"
	"testing"

	"github.com/deckhand-dev/deckhand/internal/shared/modelfacts"
	"github.com/deckhand-dev/deckhand/runner/internal/model/wiretest"
)

var (
	answerTokens  = regexp.MustCompile(`"(?:completion|output)_tokens":\s*(\d+)`)
	requestTokens = regexp.MustCompile(`"(?:prompt|input)_tokens":\s*(\d+)`)
	// statedWindow is the window that a refusal names.
	statedWindow = regexp.MustCompile(`maximum context length is (\d+)|tokens > (\d+) maximum|context (?:window|length|size)[^0-9]{1,40}(\d{4,})`)
)

// most returns the largest number that an expression finds.
func most(e *regexp.Regexp, text []byte) (n int64) {
	for _, found := range e.FindAllSubmatch(text, -1) {
		for _, digits := range found[1:] {
			read, _ := strconv.ParseInt(string(digits), 10, 64) // empty: of another alternative
			n = max(n, read)
		}
	}
	return n
}

// A model answers and reads no more than its documented sizes, and refuses nothing below them.
func TestSizesAgreeWithRecordings(t *testing.T) {
	compared := 0
	for _, kind := range []string{"chat", "anthropic", "responses"} {
		for _, r := range wiretest.Recordings(t, kind) {
			var asked struct{ Model string }
			_ = json.Unmarshal(r.Req, &asked) // some are of another form
			window, maxOutput := modelfacts.Sizes(canonical(asked.Model))
			if window == 0 {
				continue
			}
			compared++
			answered, read := most(answerTokens, r.Raw), most(requestTokens, r.Raw)
			if maxOutput > 0 && answered > maxOutput || read > window {
				t.Errorf("%s: %s read %d and answered %d tokens; the table has %d and %d", r.Name(), asked.Model, read, answered, window, maxOutput)
			}
			if stated := most(statedWindow, r.Raw); r.Status >= 400 && stated > 0 && stated < window {
				t.Errorf("%s: %s has a window of %d, and the table has %d: %s", r.Name(), asked.Model, stated, window, r.Raw)
			}
		}
	}
	if compared < 1000 {
		t.Errorf("%d recordings were compared: the names of the table fit too few", compared)
	}
}
