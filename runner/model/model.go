// Package model is the interface to language models. A Model has one method, Stream; Collect, the only assembler of
// streams, collects whole answers from it. Because the interface is so small, retrying, pricing and routing are plain
// decorators. Adapters are packages below this one and must pass the suite in modeltest. They read liberally and write
// strictly, and never return an incomplete answer as a whole one: a stream that ends without a finish reason is an
// *IncompleteError.
package model

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"iter"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// A Model answers one request as a stream of deltas. An error ends the stream
// and is one of this package's types or wraps the context's.
type Model interface {
	Stream(ctx context.Context, req *Request) iter.Seq2[Delta, error]
}

// A Request is the complete input of a model for one answer.
type Request struct {
	System string
	// Steps is the visible session, oldest first. Every call in it is answered.
	Steps  []step.Step
	Tools  []step.Tool
	Params Params
	// Files reads the images and documents of the steps; nil: a line of text replaces each.
	Files Files
	// CacheKey groups the requests of one session for the provider's prompt cache.
	CacheKey string
}

// Files reads the bytes of images and documents.
type Files interface {
	// ReadFile returns the bytes of the file with a SHA-256, in hex. It may be called from several goroutines at once.
	ReadFile(digest string) ([]byte, error)
}

// MaxFiles is the maximum number of images and documents in a request: the last ones of the session.
const MaxFiles = 20

// MaxFileBytes is how many bytes the images and documents of a request have in all at most.
const MaxFileBytes = 12 << 20

// Params are the inference settings of a request.
type Params = step.Params

// Reasoning is how hard a model should think before it answers.
type Reasoning = step.Reasoning

// The levels of reasoning; empty leaves it to the provider.
const (
	ReasoningOff    = step.ReasoningOff
	ReasoningLow    = step.ReasoningLow
	ReasoningMedium = step.ReasoningMedium
	ReasoningHigh   = step.ReasoningHigh
)

// A Delta is one piece of an answer. Any of its fields may be set.
type Delta struct {
	Text      string
	Thinking  string
	Signature string
	// Provider is data for this Model only, in a form of its adapter. If the last part has the same Kind, the data is
	// added to that part; otherwise it is a new part. Provider of kind [step.PartOpaque] is always a new part.
	Provider json.RawMessage
	// Kind is the kind of part that Provider belongs to; empty: thinking.
	Kind step.PartKind
	// Model is the name of the Model that answers from here on, if there are several.
	Model string
	Call  *CallDelta
	// Usage replaces earlier reports. It also precedes an error if an answer had begun, because tokens of a broken
	// stream are charged.
	Usage *step.Usage
	// Requests are the usage of each request of the answer, in order, if Usage is the sum of several, or is an estimate
	// although the provider reported the input. Prices depend on the input of a request, so the layer that prices a
	// Model reads them; other layers ignore them.
	Requests []RequestUsage
	Finish   step.Finish
	// UnclearReason is the provider's finish reason if it does not show that the answer is complete: it is unknown, or
	// it announces calls and there are none.
	UnclearReason string
	// Continued reports that the answer paused and that the rest is about to be requested, which counts as another
	// request. Usage in the same Delta is the usage so far. A consumer that stops here prevents that request.
	Continued bool
	// Reset reports that all earlier deltas are void: the model is asked again. Usage in the same Delta is the usage so
	// far; Because is the cause, for users.
	Reset   bool
	Because string
	// Warning describes, for users, what the sent request lacks: files that a user attached.
	Warning string
	// Repair reports that the provider refused the request, and that it is sent once more with a change, which counts
	// as another request. Because is the cause, for users.
	Repair *Repair
}

// RequestUsage is the usage of one request.
type RequestUsage struct {
	step.Usage
	// InputReported reports that the provider reported the input, also if the Usage is Estimated.
	InputReported bool
}

// A Repair is a change to a request that a provider refused. The change is kept for the requests
// after it.
type Repair struct {
	Kind RepairKind
	// Change describes the change for users.
	Change string
}

// RepairKind is the kind of change of a Repair.
type RepairKind string

// The kinds of repairs.
const (
	RepairField       RepairKind = "Field"       // a field is left out, or has another name
	RepairOutputLimit RepairKind = "OutputLimit" // the largest answer is lowered
	RepairReasoning   RepairKind = "Reasoning"   // earlier reasoning is sent, or is not sent
	RepairToolSchema  RepairKind = "ToolSchema"  // the schema of a tool is written differently
	RepairFiles       RepairKind = "Files"       // images and documents are not sent
)

// A CallDelta is one piece of a tool call. Pieces with one Index belong to one
// call. Name, if there is one, is all of the name so far; Args are concatenated.
type CallDelta struct {
	Index int
	Name  string
	Args  string
	// Replace reports that Args has all arguments so far.
	Replace bool
	// Provider is data for this Model only, in a form of its adapter. It replaces earlier data of the call.
	Provider json.RawMessage
	// Signed reports that Provider is a signature of reasoning that led to the call.
	Signed bool
}

// A Response is a whole answer.
type Response struct {
	// Model is the Model that answered, if there are several.
	Model string
	// Parts is the content in its order. The n-th part of kind [step.PartCall] is the place
	// of the n-th call; calls without a part follow all parts.
	Parts  []step.Part
	Calls  []Call
	Finish step.Finish
	// UnclearReason is the UnclearReason of the Delta with the Finish.
	UnclearReason string

	Usage step.Usage
}

// A Call is a tool call as the model wrote it. Args may be any text, JSON or not, and is {} if the model wrote none.
// The engine parses and repairs it, and gives it an id.
type Call struct {
	Name string
	Args string
}

// WireID returns the id of a call for requests: nine letters and digits, the only form that every known provider
// accepts (Mistral accepts no other). It is unique in the session of the call, whose name is left out.
func WireID(id string) string {
	own := id[strings.LastIndexByte(id, '.')+1:]
	first, n, _ := strings.Cut(own, "c")
	if seq, ok := strings.CutPrefix(first, "s"); ok && number(seq, 4) && number(n, 3) {
		return "s" + "0000"[len(seq):] + seq + "c" + "000"[len(n):] + n
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])[:9]
}

// number reports whether a text is a number with a maximum number of digits, as step.CallID writes it.
func number(text string, digits int) bool {
	if text == "" || len(text) > digits || text[0] == '0' && text != "0" {
		return false
	}
	return !strings.ContainsFunc(text, func(r rune) bool { return r < '0' || r > '9' })
}

// maxName is the longest name of a tool that providers accept.
const maxName = 64

// WireName returns the name of a tool in a form that every provider accepts. A model may invent an invalid name, and
// with it in the session a provider would refuse each later request.
func WireName(name string) string {
	legal := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
	return cmp.Or(legal[:min(len(legal), maxName)], "unnamed")
}

// Interlude is the text of an answer that is inserted between a tool result and a message of the user if there was
// none: many chat templates accept no message of the user directly after a tool result.
// https://github.com/mistralai/mistral-common
const Interlude = "(continued)"

// bytesPerToken is the usual ratio of English, code and JSON.
const bytesPerToken = 4

// overheadPerItem is the estimated number of tokens that a provider adds for each message and tool.
const overheadPerItem = 4

// EstimateInput estimates the input tokens of a request that no provider reported: after a broken stream, or before a
// request.
func EstimateInput(req *Request) int64 {
	size, items := len(req.System), 1
	var files []int64          // tokens of each
	for i := range req.Steps { // by index: a session has thousands of them, and they are large
		items++
		s := &req.Steps[i]
		for j := range s.Parts {
			size += len(s.Parts[j].Text) + len(s.Parts[j].Provider)
			if f := s.Parts[j].File; f != nil {
				files = append(files, EstimateFile(f))
			}
		}
		for j := range s.Calls {
			size += len(s.Calls[j].Name) + len(s.Calls[j].Args)
		}
	}
	for _, t := range req.Tools {
		items++
		size += len(t.Name) + len(t.Description) + len(t.Input)
	}
	total := EstimateTokens(size) + int64(items*overheadPerItem)
	for _, tokens := range files[max(0, len(files)-MaxFiles):] {
		total += tokens
	}
	return total
}

// The cost of images and documents, in tokens. Providers scale large images down before they count them. A page of a
// PDF counts as text and an image.
const (
	pixelsPerToken     = 750
	leastImage         = 85
	mostImage          = 1_600
	bytesPerTokenOfPDF = 40
	leastDocument      = 1_500
)

// EstimateFile guesses how many tokens an image or a document is.
func EstimateFile(f *step.File) int64 {
	if f.Width == 0 {
		return max(leastDocument, f.Size/bytesPerTokenOfPDF)
	}
	return min(max(int64(f.Width)*int64(f.Height)/pixelsPerToken, leastImage), mostImage)
}

// EstimateTokens estimates how many tokens a number of bytes of text are.
func EstimateTokens(bytes int) int64 {
	return int64((bytes + bytesPerToken - 1) / bytesPerToken)
}
