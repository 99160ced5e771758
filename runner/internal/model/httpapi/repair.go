package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// maxRepairs bounds the requests of one call that are sent again with a change.
const maxRepairs = 3

// reasoningFields are the fields of messages in which reasoning is sent back.
var reasoningFields = []string{"reasoning_content", "reasoning", "reasoning_details"}

// Repairs are the changes to requests that an endpoint asked for.
type Repairs struct {
	dropped           []string          // fields that are not sent
	renamed           map[string]string // fields that have another name
	reasoningDemanded bool
	maxOutput         int64 // 0: as it is set
}

// Dropped reports whether a field is not sent.
func (r Repairs) Dropped(field string) bool { return slices.Contains(r.dropped, field) }

// ReasoningDemanded reports whether each earlier answer must have reasoning.
func (r Repairs) ReasoningDemanded() bool { return r.reasoningDemanded }

// MaxOutput returns a limit of the answer in tokens, as far as the endpoint accepts it.
func (r Repairs) MaxOutput(limit int64) int64 {
	if r.maxOutput == 0 || limit == 0 {
		return limit
	}
	return min(limit, r.maxOutput)
}

// Apply changes the fields of a body. It returns the usual name and the value of the field that bounds the answer; 0:
// there is none.
func (r Repairs) Apply(body map[string]any, outputField string) (field string, limit int64) {
	for _, field := range r.dropped {
		delete(body, field)
	}
	field = outputField
	if instead, ok := r.renamed[field]; ok {
		if value, ok := body[field]; ok {
			delete(body, field)
			body[instead] = value
		}
		field = instead
	}
	switch v := body[field].(type) {
	case int64:
		limit = v
	case json.Number:
		limit, _ = v.Int64() // no limit if it is not one
	}
	if lower := r.MaxOutput(limit); lower < limit {
		limit = lower
		body[field] = limit
	}
	return field, limit
}

// A RepairLog keeps the Repairs of an endpoint. Its sessions share it.
type RepairLog struct {
	mu      sync.Mutex
	repairs Repairs
}

// Now returns the repairs so far.
func (l *RepairLog) Now() Repairs {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.repairs
	now.dropped, now.renamed = slices.Clone(now.dropped), maps.Clone(now.renamed)
	return now
}

// Send sends a request. If the endpoint refuses it for a cause that a change certainly removes, Send applies the change
// and sends the request again, at most three times. report is called before each further request. If it returns false,
// Send stops and ok is false.
func (l *RepairLog) Send(x *Call, send func() error, report func(model.Delta) bool) (ok bool, err error) {
	for range maxRepairs {
		err = send()
		refused, isRefused := errors.AsType[*model.BadRequestError](err)
		if !isRefused || x.client.NoRepair {
			return true, err
		}
		repair := l.add(refused.Refusal, x.Sent)
		if repair == nil {
			return true, err
		}
		if !report(model.Delta{Repair: repair, Because: refused.Error()}) {
			return false, nil
		}
	}
	return true, send()
}

// add adds the change that removes the cause of a refusal, and returns it. It returns nil if there is none, or if the
// request already had it.
func (l *RepairLog) add(r model.Refusal, sent Sent) *model.Repair {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch r.Cause {
	case model.CauseOutputLimit:
		return l.lower(r, sent)
	case model.CauseReasoningMissing:
		return l.demandReasoning(sent)
	case model.CauseParameter:
		return l.changeField(r, sent)
	default:
		return nil
	}
}

// lower lowers the largest answer that is asked for.
func (l *RepairLog) lower(refusal model.Refusal, sent Sent) *model.Repair {
	if refusal.Limit <= 0 || refusal.Limit >= sent.MaxOutput {
		return nil
	}
	l.repairs.maxOutput = refusal.Limit
	return &model.Repair{Kind: model.RepairOutputLimit, Change: fmt.Sprintf("%s is %d instead of %d", sent.OutputField, refusal.Limit, sent.MaxOutput)}
}

// demandReasoning sends reasoning with each earlier answer, unless the endpoint refused that.
func (l *RepairLog) demandReasoning(sent Sent) *model.Repair {
	if !sent.EchoesReasoning || l.repairs.reasoningDemanded || l.repairs.Dropped(reasoningFields[0]) {
		return nil
	}
	l.repairs.reasoningDemanded = true
	return &model.Repair{Kind: model.RepairReasoning, Change: "each earlier answer is sent with reasoning, a blank one if it had none"}
}

// changeField leaves out a field that the adapter added, or gives it the name that is asked for.
// A field that a user has set is not changed, except for the name of the limit of the answer.
func (l *RepairLog) changeField(refusal model.Refusal, sent Sent) *model.Repair {
	field := refusal.Field
	_, renamed := l.repairs.renamed[refusal.Instead]
	switch {
	case field == "":
		return nil
	case field == sent.OutputField && refusal.Instead != "" && !renamed:
		if l.repairs.renamed == nil {
			l.repairs.renamed = map[string]string{}
		}
		l.repairs.renamed[field] = refusal.Instead
		return &model.Repair{Kind: model.RepairField, Change: fmt.Sprintf("%s is sent as %s", field, refusal.Instead)}
	case refusal.Setting != "" || l.repairs.Dropped(field):
		return nil
	case slices.Contains(reasoningFields, field) && slices.Contains(sent.MessageFields, field):
		if l.repairs.reasoningDemanded || l.repairs.Dropped(reasoningFields[0]) {
			return nil
		}
		l.repairs.dropped = append(l.repairs.dropped, reasoningFields[0])
		return &model.Repair{Kind: model.RepairReasoning, Change: "reasoning of earlier answers is not sent"}
	}
	l.repairs.dropped = append(l.repairs.dropped, field)
	return &model.Repair{Kind: model.RepairField, Change: field + " is not sent"}
}

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

// maxSessions bounds how many sessions are remembered.
const maxSessions = 1024

// RefusedReasoning records, for each session, the last step whose reasoning the provider refused. Some providers bind
// reasoning to the messages before it, or to the account, and refuse it after a message was hidden or the key was
// replaced. The zero value is empty.
type RefusedReasoning struct {
	mu    sync.Mutex
	steps map[string]int64
}

// UpTo returns the last step whose reasoning is not sent in a session; 0: all reasoning is sent.
func (r *RefusedReasoning) UpTo(session string) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.steps[session]
}

// Add records that the reasoning in a request was refused, and reports whether that is new.
func (r *RefusedReasoning) Add(req *model.Request) bool {
	var last int64
	for _, s := range req.Steps {
		if s.Role == step.RoleAssistant {
			last = max(last, s.Seq)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if last <= r.steps[req.CacheKey] {
		return false
	}
	if r.steps == nil || len(r.steps) >= maxSessions {
		r.steps = map[string]int64{}
	}
	r.steps[req.CacheKey] = last
	return true
}
