// Package step has the types of a session: its messages (Step), their usage (Usage), their place in the tree of agents
// (Scope) and the events about them (Event). All packages of the runner use these types; this one imports only the
// standard library.
package step

import (
	"encoding/json"
	"fmt"
	"iter"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Role is the author of a Step.
type Role string

// The roles of a session. The system prompt is no step: it belongs to the
// Agent and is sent with every request.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// A Step is one message of a session: of the user, the model or a tool. A recorded Step never changes; compaction hides
// it but does not delete it.
type Step struct {
	// Seq is the position in the session, contiguous from 1.
	Seq  int64 `json:"seq"`
	Role Role  `json:"role"`
	// Parts is the content in its order. The n-th part of kind PartCall is the position of the n-th call; calls without
	// a part follow all parts.
	Parts []Part `json:"parts,omitempty"`
	// Calls are the tool calls of an assistant's step, in their order.
	Calls []Call `json:"calls,omitempty"`
	// CallID and Name tie a tool's step to the call that it answers.
	CallID string `json:"callID,omitempty"`
	Name   string `json:"name,omitempty"`
	// IsError marks a tool's step that reports a failure to the model.
	IsError bool `json:"isError,omitempty"`
	// Failed marks a tool's step whose call was executed and reports a failure of its own: a command with an exit code
	// other than 0.
	Failed bool `json:"failed,omitempty"`
	// Pending marks a tool's step which reports that the work of an earlier call still runs.
	Pending bool `json:"pending,omitempty"`
	// Finish is why the assistant stopped; empty for other roles.
	Finish Finish `json:"finish,omitempty"`
	// UnclearReason is the provider's finish reason if it does not show that the answer is complete: it is unknown, or
	// it announces calls and there are none.
	UnclearReason string `json:"unclearReason,omitempty"`
	// Model is the name of the Model that answered; empty on other roles.
	Model string `json:"model,omitempty"`
	// Note marks a user's step that the user did not write; empty: the user did.
	Note Note `json:"note,omitempty"`
	// Hooks are the actions of hooks on this step.
	Hooks []Hook `json:"hooks,omitempty"`
	Usage Usage  `json:"usage,omitzero"`
	Scope Scope  `json:"scope,omitzero"`
	// At is when the step began, Duration how long it took.
	At       time.Time     `json:"at,omitzero"`
	Duration time.Duration `json:"duration,omitempty"`
}

// Text joins the text parts of a step; thinking is left out.
func (s Step) Text() string {
	var b strings.Builder
	for _, p := range s.Parts {
		if p.Kind == PartText {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// A Note is the author of a user's step that the user did not write.
type Note string

// The notes.
const (
	NoteRunner  Note = "runner"  // the runner says what happened: a lost attempt, a full disk
	NoteNudge   Note = "nudge"   // the runner says how to end
	NoteStuck   Note = "stuck"   // the runner says that the agent goes round in circles
	NoteHook    Note = "hook"    // a hook adds something
	NoteMessage Note = "message" // a person speaks to the running agent
	NoteSummary Note = "summary" // stands for the steps that a compaction hid
)

// A Hook is the action of one hook at one point of a step.
type Hook struct {
	Name  string `json:"name"`
	Point string `json:"point"`
	// Did is Allowed, Changed, Vetoed or Failed.
	Did    HookDid `json:"did"`
	Reason string  `json:"reason,omitempty"`
}

// HookDid is the action of a hook.
type HookDid string

// The actions of a hook.
const (
	HookAllowed HookDid = "Allowed"
	HookChanged HookDid = "Changed"
	HookVetoed  HookDid = "Vetoed"
	HookFailed  HookDid = "Failed"
)

// PartKind is the kind of a Part.
type PartKind string

// The kinds of content.
const (
	PartText     PartKind = "text"
	PartThinking PartKind = "thinking"
	// PartOpaque is a part that only its provider can read, such as a search that the provider ran. Its Text is for
	// users, and may be empty.
	PartOpaque PartKind = "opaque"
	// PartCall is the place of a call among the other parts.
	PartCall PartKind = "call"
	// PartImage and PartDocument are files that are shown to the model.
	PartImage    PartKind = "image"
	PartDocument PartKind = "document"
)

// A Part is one piece of content.
type Part struct {
	Kind PartKind `json:"kind"`
	Text string   `json:"text,omitempty"`
	// Signature is the provider's proof that it wrote a thinking part, sent back
	// to the same model unchanged.
	Signature string `json:"signature,omitempty"`
	// Provider is data for the Model that made the part, in a form that only its adapter reads: encrypted reasoning,
	// the signature of a call, the phase of a text. ForModel removes it for any other Model.
	Provider json.RawMessage `json:"provider,omitempty"`
	// Signed reports that Provider of a call is a signature of reasoning, which providers require until the tool loop
	// ends.
	Signed bool `json:"signed,omitempty"`
	// File is the content of an image or a document; nil for other kinds.
	File *File `json:"file,omitempty"`
}

// A Call is one tool call that a model asks for.
type Call struct {
	// ID is the runner's own id of the call, unique in the Run: "s3c1", or "s3c1.s2c1" in the session that the call
	// s3c1 opened. The ids of providers may repeat, so each adapter sends the last element of this id in the form of
	// its provider.
	ID   string `json:"id"`
	Name string `json:"name"`
	// Args is always valid JSON: an object or, if the model wrote something else, its text as a JSON string.
	Args json.RawMessage `json:"args"`
}

// ID names the step seq of a session, as logs and the status show it; the Run's own session has no
// name.
func ID(session string, seq int64) string {
	if session == "" {
		return fmt.Sprintf("s%d", seq)
	}
	return fmt.Sprintf("%s.s%d", session, seq)
}

// CallID names the n-th call (from 1) of the assistant's step seq in a session.
func CallID(session string, seq int64, n int) string {
	return fmt.Sprintf("%sc%d", ID(session, seq), n)
}

// SeqOf returns the number in the id of a step or of a call: 14 for s14, and for s3c1.s14c2. It is 0 for
// any other text.
func SeqOf(id string) int64 {
	last, isStep := strings.CutPrefix(id[strings.LastIndexByte(id, '.')+1:], "s")
	number, _, _ := strings.Cut(last, "c")
	seq, err := strconv.ParseInt(number, 10, 64)
	if !isStep || err != nil {
		return 0
	}
	return seq
}

// Finish is why a model stopped, in the same terms for all providers.
type Finish string

// The values of Finish.
const (
	FinishStop    Finish = "stop"    // the answer is complete
	FinishCalls   Finish = "calls"   // the model waits for the results of its calls
	FinishLength  Finish = "length"  // the output limit cut the answer: its calls are never executed
	FinishRefusal Finish = "refusal" // the provider or the model declined
	FinishOther   Finish = "other"
)

// A Tool is the description of a tool for a model.
type Tool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	// Input is the JSON Schema of the arguments; always an object schema.
	Input json.RawMessage `json:"input"`
}

// Scope is a position in the tree of agents. The zero Scope is the Run's own agent.
type Scope struct {
	Depth int `json:"depth,omitempty"`
	// Parent is the call that opened the session: the session's name.
	Parent string `json:"parent,omitempty"`
	Agent  string `json:"agent,omitempty"`
}

// Content yields the parts in their order, each part of kind PartCall together with its call. Calls without a part come
// last, each with a new part of that kind. A part of that kind without a call is skipped.
func (s Step) Content() iter.Seq2[Part, *Call] {
	return func(yield func(Part, *Call) bool) {
		calls := s.Calls
		for _, p := range s.withAllCalls() {
			var call *Call
			if p.Kind == PartCall {
				if len(calls) == 0 {
					continue
				}
				call, calls = &calls[0], calls[1:]
			}
			if !yield(p, call) {
				return
			}
		}
	}
}

// withAllCalls returns the parts, with a part of kind PartCall added for each call that has none.
func (s Step) withAllCalls() []Part {
	missing := len(s.Calls)
	for i := range s.Parts {
		if s.Parts[i].Kind == PartCall {
			missing--
		}
	}
	if missing <= 0 {
		return s.Parts
	}
	return append(slices.Clip(s.Parts), slices.Repeat([]Part{{Kind: PartCall}}, missing)...)
}

// ForModel returns the step in the form for the Model with a name. An answer of another Model keeps its texts and calls
// in their order, and loses its reasoning and all provider data; an opaque part becomes its text. An empty name means
// any Model.
func (s Step) ForModel(name string) Step {
	if name == "" || s.Model == "" || s.Model == name || !slices.ContainsFunc(s.Parts, Part.isPrivate) {
		return s
	}
	parts := s.Parts
	s.Parts = nil
	for _, p := range parts {
		switch {
		case p.Kind == PartThinking, p.Kind == PartOpaque && p.Text == "":
			continue
		case p.Kind == PartOpaque:
			p.Kind = PartText
		}
		s.Parts = append(s.Parts, Part{Kind: p.Kind, Text: p.Text, File: p.File})
	}
	return s
}

// isPrivate reports whether only the Model that made a part can read all of it.
func (p Part) isPrivate() bool {
	return p.Kind == PartThinking || p.Kind == PartOpaque || p.Provider != nil
}

// EventType is a closed list of the types of events.
type EventType string

// The types of events.
const (
	EventRunStarted    EventType = "run.started"
	EventStateChanged  EventType = "state.changed"
	EventStepStarted   EventType = "step.started"
	EventTextDelta     EventType = "text.delta"
	EventThinkingDelta EventType = "thinking.delta"
	EventCallStarted   EventType = "call.started"
	EventCallOutput    EventType = "call.output"
	EventCallFinished  EventType = "call.finished"
	EventCallDenied    EventType = "call.denied"
	EventStepFinished  EventType = "step.finished"
	EventReset         EventType = "reset"
	EventRepaired      EventType = "request.repaired"
	EventModelRouted   EventType = "model.routed"
	EventCompacted     EventType = "compacted"
	EventNudged        EventType = "nudged"
	EventLimitNear     EventType = "limit.near"
	EventWarning       EventType = "warning"
	EventPending       EventType = "pending"
	EventDecided       EventType = "decided"
	EventChildStarted  EventType = "child.started"
	EventChildFinished EventType = "child.finished"
	EventHostRefused   EventType = "host.refused"
	EventFile          EventType = "file"
	EventFiles         EventType = "files"
	EventDropped       EventType = "dropped"
	EventRunFinished   EventType = "run.finished"
)

// Params are the inference settings of a request; the provider chooses each setting that is zero.
type Params struct {
	MaxOutputTokens int64     `json:"maxOutputTokens,omitempty"`
	Temperature     *float64  `json:"temperature,omitempty"`
	TopP            *float64  `json:"topP,omitempty"`
	Reasoning       Reasoning `json:"reasoning,omitempty"`
	// Extra is a JSON object that is merged into the request body and overrides all other fields.
	Extra json.RawMessage `json:"extra,omitempty"`
}

// Reasoning is how hard a model should think before it answers.
type Reasoning string

// The levels of reasoning. If it is empty, the provider chooses.
const (
	ReasoningOff    Reasoning = "Off"
	ReasoningLow    Reasoning = "Low"
	ReasoningMedium Reasoning = "Medium"
	ReasoningHigh   Reasoning = "High"
)

// A File is an image or a document of a session. Its bytes are not in the step: they are kept
// under the digest.
type File struct {
	// Digest is the SHA-256 of the bytes, in hex.
	Digest string `json:"digest"`
	// MediaType is image/png, image/jpeg, image/gif, image/webp or application/pdf, as the
	// bytes have it.
	MediaType string `json:"mediaType"`
	// Size is in bytes.
	Size int64 `json:"size"`
	// Width and Height are the size of an image, in pixels.
	Width  int `json:"width,omitempty"`
	Height int `json:"height,omitempty"`
	// Name is the path of the file, for users and models.
	Name string `json:"name,omitempty"`
}

// Line describes a file of a kind in brackets, with a reason why it is not shown; empty: it is.
func (f *File) Line(kind PartKind, why string) string {
	text := "[" + string(kind)
	if f.Name != "" {
		text += " " + f.Name
	}
	if f.Width > 0 {
		text += fmt.Sprintf(", %dx%d", f.Width, f.Height)
	}
	text += ", " + f.MediaType
	if why != "" {
		text += ": " + why
	}
	return text + "]"
}

// BaseName returns the last element of the name of a file, which is never empty.
func (f *File) BaseName() string {
	if name := path.Base(f.Name); name != "." && name != "/" {
		return name
	}
	return "document"
}

// HasFiles reports whether a step has an image or a document.
func (s Step) HasFiles() bool {
	return slices.ContainsFunc(s.Parts, func(p Part) bool { return p.File != nil })
}

// Files returns how many images and documents a step has.
func (s Step) Files() (n int) {
	for _, p := range s.Parts {
		if p.File != nil {
			n++
		}
	}
	return n
}

// WithoutFiles returns the step with a text instead of each file for which why returns a reason. The step itself does
// not change.
func (s Step) WithoutFiles(why func(p Part) string) Step {
	if !s.HasFiles() {
		return s
	}
	parts := slices.Clone(s.Parts)
	for i, p := range parts {
		if p.File == nil {
			continue
		}
		reason := why(p)
		if reason == "" {
			continue
		}
		text := p.File.Line(p.Kind, reason)
		if i > 0 {
			text = "\n" + text
		}
		parts[i] = Part{Kind: PartText, Text: text}
	}
	s.Parts = parts
	return s
}
