package modeltest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// AnyModel is the name in a Script for all models without their own dialogue.
const AnyModel = "*"

// A Script has the answers of a Server.
type Script struct {
	// Key, if set, is the only key that is not refused with 401.
	Key string `json:"key,omitempty"`
	// Unsigned imitates providers with the Messages API that sign no thinking but require it with every call: DeepSeek,
	// Kimi.
	Unsigned bool `json:"unsigned,omitempty"`
	// Cache makes the usage report which beginnings of prompts were sent before, as a provider with a prompt cache
	// does.
	Cache bool `json:"cache,omitempty"`
	// RefusesFiles, if set, is the message of the 400 for a request with images or documents, as from a model that
	// accepts none.
	RefusesFiles string `json:"refusesFiles,omitempty"`
	// Models are the dialogues by the name of the model that a request asks for.
	Models map[string]Dialogue `json:"models"`
}

// A Dialogue has the answers of one model, turn by turn. The turn of a request is the number of assistant messages in
// it.
type Dialogue struct {
	Turns []Turn `json:"turns"`
	// After determines the answers after the last turn.
	After After `json:"after,omitempty"`
}

// After determines how a Dialogue continues after its last turn.
type After string

// The ways to continue.
const (
	Refuse After = ""       // HTTP 400: the script ends here
	Repeat After = "Repeat" // the last turn again and again
)

// A Turn is one answer.
//
// Text and the arguments of Calls may quote the request: {{.LastToolResult}} is
// the last tool message in it, {{.LastUserMessage}} the last user message.
type Turn struct {
	Thinking string `json:"thinking,omitempty"`
	Text     string `json:"text,omitempty"`
	Calls    []Call `json:"calls,omitempty"`
	// Finish is the finish. Default: calls if there are Calls, otherwise stop.
	Finish step.Finish `json:"finish,omitempty"`
	// FinishReason replaces the reason that the provider writes for Finish, for example with abort.
	FinishReason string `json:"finishReason,omitempty"`
	// Usage is the usage. Default: computed from the texts.
	Usage *Usage `json:"usage,omitempty"`
	// DelayMS is the pause before each chunk.
	DelayMS int64 `json:"delayMS,omitempty"`
	// Faults are the failures of the first requests of this turn, in order. The request after them is answered.
	Faults []Fault `json:"faults,omitempty"`
}

// A Call is a call of the model. Args is an object, or a string that is sent unchanged, to imitate a model that writes
// invalid JSON.
type Call struct {
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

// Usage is the reported usage of an answer.
type Usage struct {
	Input     int64 `json:"input"`
	CacheRead int64 `json:"cacheRead,omitempty"`
	// CacheWrite is only in answers of the Messages API.
	CacheWrite int64 `json:"cacheWrite,omitempty"`
	Output     int64 `json:"output"`
	Reasoning  int64 `json:"reasoning,omitempty"`
	// CostUSD is a decimal, such as 0.0042; empty: not reported.
	CostUSD json.Number `json:"costUSD,omitempty"`
}

// A Fault is one way to fail.
type Fault struct {
	Kind FaultKind `json:"kind"`
	// Times is how many requests fail so; 0 means one, -1 all.
	Times int `json:"times,omitempty"`
	// Status and RetryAfter are the HTTP answer of a FaultStatus.
	Status     int    `json:"status,omitempty"`
	RetryAfter string `json:"retryAfter,omitempty"`
	// Message is the message of the error.
	Message string `json:"message,omitempty"`
	// After is how many bytes of the answer precede Cut, Reset, Idle or, as whole events, StreamError.
	After int `json:"after,omitempty"`
}

// FaultKind names a way to fail.
type FaultKind string

// The ways to fail.
const (
	FaultStatus      FaultKind = "Status"      // an HTTP status and an error body
	FaultHTML        FaultKind = "HTML"        // a web page with HTTP 200
	FaultErrorBody   FaultKind = "ErrorBody"   // an error body with HTTP 200
	FaultGarbage     FaultKind = "Garbage"     // bytes that mean nothing
	FaultReset       FaultKind = "Reset"       // the connection is reset
	FaultCut         FaultKind = "Cut"         // the answer ends early, as if it were whole
	FaultIdle        FaultKind = "Idle"        // nothing more comes until the client goes away
	FaultStreamError FaultKind = "StreamError" // an error in the middle of the stream
)

// Parse reads a Script from JSON and refuses unknown fields.
func Parse(data []byte) (Script, error) {
	var s Script
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s); err != nil {
		return Script{}, fmt.Errorf("decoding the script: %w", err)
	}
	for name, d := range s.Models {
		if err := d.check(); err != nil {
			return Script{}, fmt.Errorf("checking model %q: %w", name, err)
		}
	}
	return s, nil
}

func (d Dialogue) check() error {
	if len(d.Turns) == 0 {
		return errors.New("it has no turns")
	}
	if d.After != Refuse && d.After != Repeat {
		return fmt.Errorf("after is %q, not %q or absent", d.After, Repeat)
	}
	for i, t := range d.Turns {
		for _, f := range t.Faults {
			if _, ok := faults[f.Kind]; !ok {
				return fmt.Errorf("turn %d: no such fault: %q", i, f.Kind)
			}
		}
	}
	return nil
}

// turn returns the answer to a request with n assistant messages.
func (d Dialogue) turn(n int) (Turn, bool) {
	switch {
	case n < len(d.Turns):
		return d.Turns[n], true
	case d.After == Repeat:
		return d.Turns[len(d.Turns)-1], true
	}
	return Turn{}, false
}

// quoting returns the turn with quotations from the request filled in.
func (t Turn) quoting(r Request) Turn {
	t.Text = quote(t.Text, r, func(s string) string { return s })
	calls := make([]Call, len(t.Calls))
	for i, c := range t.Calls {
		calls[i] = Call{Name: c.Name, Args: json.RawMessage(quote(string(c.Args), r, inJSON))}
	}
	t.Calls = calls
	return t
}

func quote(text string, r Request, escape func(string) string) string {
	return strings.NewReplacer(
		"{{.LastToolResult}}", escape(r.last("tool")),
		"{{.LastUserMessage}}", escape(r.last("user")),
	).Replace(text)
}

// inJSON returns s escaped for use within a JSON string.
func inJSON(s string) string {
	quoted, _ := json.Marshal(s) // a string: cannot fail
	return string(quoted[1 : len(quoted)-1])
}

// finish returns why the answer ends.
func (t Turn) finish() step.Finish {
	switch {
	case t.Finish != "":
		return t.Finish
	case len(t.Calls) > 0:
		return step.FinishCalls
	}
	return step.FinishStop
}

// reason returns the finish reason that the provider writes.
func (t Turn) reason(reasons map[step.Finish]string) string {
	return cmp.Or(t.FinishReason, reasons[t.finish()])
}

func (t Turn) delay() time.Duration { return time.Duration(t.DelayMS) * time.Millisecond }
