package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/model"
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
