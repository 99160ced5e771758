package httpapi

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/model"
)

const (
	// minOutput is the smallest limit of an answer that is worth a request, in tokens.
	minOutput = 256
	// minWindow is the smallest number that counts as a context window, in tokens.
	minWindow = 1024
)

// number matches a separate whole number, with or without separators of thousands.
var number = pattern("(?:^|[\\s\\[(<>=:'\"`+/])(\\d{1,3}(?:,\\d{3})+|\\d+)\\b")

// numbers returns the whole numbers in a text, except those within names.
func numbers(text string) []int64 {
	var all []int64
	for _, m := range number().FindAllStringSubmatchIndex(text, -1) {
		start, end := m[2], m[3]
		if end+1 < len(text) && (text[end] == '.' || text[end] == '-') && (isLetter(text[end+1]) || isDigit(text[end+1])) {
			continue // 5.6, 2024-10-21
		}
		if n, err := strconv.ParseInt(strings.ReplaceAll(text[start:end], ",", ""), 10, 64); err == nil {
			all = append(all, n)
		}
	}
	return all
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

var (
	aboutOutput = pattern(`max[_ ](completion_|output_|new_)?tokens?|maximum tokens|(output|completion) tokens|in the completion|max_new_tokens`)
	aboutWindow = pattern(`context|input|prompt|in the messages`)
	// statedWindow is a context window with its size.
	statedWindow = pattern(`context[ _]?(window|length|size)?( of| is|:|=)?[ (:=]+[\d,]+`)
	below        = pattern(`(lower|less|smaller) than (\d|the)`)
)

// outputLimit recognizes that the requested limit of the answer is larger than the model, or the rest of its context
// window, allows. A request that takes more than three quarters of the window is too long itself and must be compacted.
func (r *refusal) outputLimit() (model.Refusal, bool) {
	refused := r.status == http.StatusBadRequest || r.status == http.StatusUnprocessableEntity
	if !refused || r.MaxOutput == 0 || !aboutOutput().MatchString(r.lower) {
		return model.Refusal{}, false
	}
	found := model.Refusal{Cause: model.CauseOutputLimit, Field: r.OutputField, Setting: r.Settings[r.OutputField]}
	said := numbers(r.report.message)
	if aboutWindow().MatchString(r.lower) {
		if window, input := r.window(said); window > 0 {
			found.Limit = (window - input) / 4 * 3 // the requests after this one are larger
			return found, input <= window/4*3 && found.Limit >= minOutput
		}
	}
	found.Limit = r.largestBelow(said)
	if m := statedWindow().FindStringSubmatch(r.lower); m != nil && slices.Contains(numbers(m[0]), found.Limit) {
		found.Limit = (found.Limit - r.Input) / 4 * 3 // it is the window, not the limit of an answer
	}
	if below().MatchString(r.lower) {
		found.Limit--
	}
	return found, found.Limit >= minOutput
}

// largestBelow returns the largest number that can be the limit of an answer and is below the requested limit, or 0.
func (r *refusal) largestBelow(numbers []int64) (limit int64) {
	for _, n := range numbers {
		if n >= minOutput && n < r.MaxOutput {
			limit = max(limit, n)
		}
	}
	return limit
}

// A split is one reading of a message about a context window.
type split struct {
	window, input int64
	stated        bool // the sum of input and answer is in the message, too
}

// window returns the context window and the size of the input from the numbers of a message. The input and the
// requested answer exceed the window together. If several readings are possible, one whose sum is in the message is
// preferred, then the one whose input is nearest to the estimate.
func (r *refusal) window(numbers []int64) (window, input int64) {
	var best split
	for _, w := range numbers {
		for _, in := range numbers {
			if s := (split{w, in, slices.Contains(numbers, in+r.MaxOutput)}); r.mayBe(s) && r.isBetter(s, best) {
				best = s
			}
		}
	}
	return best.window, best.input
}

// mayBe reports whether two numbers can be a window and an input that leaves too little of it.
func (r *refusal) mayBe(s split) bool {
	isWindow := s.window >= minWindow && s.window != r.MaxOutput && s.window < s.input+r.MaxOutput
	return isWindow && s.input > 0 && s.input < s.window && s.input != r.MaxOutput
}

func (r *refusal) isBetter(s, than split) bool {
	switch {
	case than.window == 0:
		return true
	case s.stated != than.stated:
		return s.stated
	}
	return distance(s.input, r.Input) < distance(than.input, r.Input)
}

func distance(a, b int64) int64 { return max(a-b, b-a) }
