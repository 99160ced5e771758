// Package telemetry turns the events of a Run into spans by the conventions of OpenTelemetry for
// generative AI, and sends them with internal/shared/otlp. It reads events like any other listener: the
// engine does not know it, and nothing waits for it.
//
// Package semconv has the names of all spans and attributes.
package telemetry

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/internal/shared/otlp"
	"github.com/deckhand-dev/deckhand/internal/shared/otlp/semconv"
	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/eventlog"
	"github.com/deckhand-dev/deckhand/runner/internal/pubsub"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

const (
	// queueSize is how many events may wait; further events are dropped.
	queueSize = 1024
	// maxOpen bounds the number of open sessions, requests, and arguments of calls.
	maxOpen = 256
	// maxContent bounds the bytes of an attribute with content.
	maxContent = 16 << 10
	// maxText bounds the bytes of any other attribute.
	maxText = 256
)

// Options configure a Tracer.
type Options struct {
	Task     task.Task
	Snapshot task.Snapshot
	Redact   *redact.Redactor
	Warn     func(error)
}

// A Tracer sends spans of the events of a feed. Nil: it sends none.
type Tracer struct {
	options  Options
	models   map[string]task.Model
	trace    otlp.TraceID
	events   *pubsub.Subscription[events.Event]
	exporter *otlp.Exporter
	done     chan struct{}
	// Open sessions and requests by name, and arguments by call.
	sessions, requests map[string]events.Event
	arguments          map[string]string
}

// Start sends spans of the events of a feed. It returns nil if the task has no valid endpoint.
func Start(feed *eventlog.Feed, o Options) *Tracer {
	to := o.Task.Traces
	if to == nil || to.Endpoint == "" {
		return nil
	}
	if err := otlp.CheckEndpoint(to.Endpoint); err != nil {
		o.Warn(err)
		return nil
	}
	t := newTracer(o)
	t.exporter = otlp.New(otlp.Options{Endpoint: to.Endpoint, Warn: o.Warn, Resource: []otlp.Attribute{
		{Key: "service.name", Value: "deckhand-runner"},
		{Key: "service.instance.id", Value: fmt.Sprintf("%s-%d", o.Task.Run.UID, o.Task.Attempt)},
		{Key: "k8s.namespace.name", Value: o.Task.Run.Namespace},
	}})
	t.events = feed.Subscribe(queueSize, isTraced)
	go t.run()
	return t
}

// run exports spans until the feed ends. A panic ends the spans, not the Run.
func (t *Tracer) run() {
	defer close(t.done)
	defer func() { _ = recover() }()
	for e := range t.events.C() {
		if span, has := t.span(e); has {
			t.exporter.Export(span)
		}
	}
}

func newTracer(o Options) *Tracer {
	t := &Tracer{
		options: o, trace: otlp.TraceOf(cmp.Or(o.Task.Traces.Root, o.Task.Run.UID)), done: make(chan struct{}),
		models: map[string]task.Model{}, sessions: map[string]events.Event{}, requests: map[string]events.Event{}, arguments: map[string]string{},
	}
	for _, m := range o.Snapshot.Models {
		t.models[m.Name] = m
	}
	return t
}

// Close sends the remaining spans, at most as long as timeout.
func (t *Tracer) Close(timeout time.Duration) {
	if t == nil {
		return
	}
	t.events.Close()
	<-t.done // its reader does no I/O
	t.exporter.Close(timeout)
}

// isTraced reports whether spans are made of an event.
func isTraced(e events.Event) bool {
	switch p := e.Payload.(type) {
	case events.StepFinished:
		return p.Step.Role != step.RoleUser
	case events.CallStarted, events.ChildStarted, events.ChildFinished, events.Pending, events.Decided:
		return true
	}
	return false
}

// span returns the span that an event ends, if it ends one.
func (t *Tracer) span(e events.Event) (otlp.Span, bool) {
	switch p := e.Payload.(type) {
	case events.CallStarted:
		if t.options.Task.Traces.Content && len(t.arguments) < maxOpen {
			t.arguments[p.ID] = string(p.Args)
		}
	case events.ChildStarted:
		if p.Model != "" { // a child Run has a span of its own
			remember(t.sessions, p.Session, e)
		}
	case events.Pending:
		remember(t.requests, p.ID, e)
	case events.StepFinished:
		if p.Step.Role == step.RoleAssistant {
			t.measure(p.Step)
			return t.chat(e, p.Step), true
		}
		return t.toolCall(e, p.Step), p.Step.Role == step.RoleTool && !p.Step.Pending
	case events.ChildFinished:
		return t.session(e, p)
	case events.Decided:
		return t.wait(e, p)
	}
	return otlp.Span{}, false
}

func remember(open map[string]events.Event, name string, e events.Event) {
	if len(open) < maxOpen {
		open[name] = e
	}
}

// agentSpan returns the span of a session: the span of the Run, or of an agent that a call invoked.
func (t *Tracer) agentSpan(session string) otlp.SpanID {
	if session == "" {
		return otlp.SpanOf(t.options.Task.Run.UID)
	}
	return otlp.SpanOf(t.options.Task.Run.UID, semconv.OperationAgent, session)
}

func (t *Tracer) chat(e events.Event, s step.Step) otlp.Span {
	model := t.models[s.Model]
	request := cmp.Or(model.Model, s.Model)
	span := t.begin(semconv.OperationChat, request, e.Scope, s)
	span.ID = otlp.SpanOf(t.options.Task.Run.UID, semconv.OperationChat, e.Scope.Parent, s.At.UTC().Format(time.RFC3339Nano))
	span.Client = true
	t.add(&span, semconv.RequestModel, request)
	t.add(&span, semconv.Model, s.Model)
	t.add(&span, semconv.ProviderName, providerOf(model))
	span.Attributes = append(span.Attributes, otlp.Attribute{Key: semconv.FinishReasons, Value: []string{finishReason(s.Finish)}})
	span.Attributes = append(span.Attributes, usage(s.Usage)...)
	if t.options.Task.Traces.Content {
		t.addContent(&span, semconv.OutputMessages, string(messages(s)))
	}
	return span
}

func (t *Tracer) toolCall(e events.Event, s step.Step) otlp.Span {
	span := t.begin(semconv.OperationTool, s.Name, e.Scope, s)
	span.ID = toolSpan(t.options.Task, s.CallID)
	t.add(&span, semconv.ToolName, s.Name)
	t.add(&span, semconv.ToolCallID, s.CallID)
	if span.Failed = s.IsError; s.IsError {
		t.add(&span, semconv.ErrorType, "tool_error")
	}
	if args, has := t.arguments[s.CallID]; has {
		delete(t.arguments, s.CallID)
		t.addContent(&span, semconv.ToolArguments, args)
		t.addContent(&span, semconv.ToolResult, s.Text())
	}
	return span
}

// session returns the span of an agent that a call invoked in the pod.
func (t *Tracer) session(e events.Event, p events.ChildFinished) (otlp.Span, bool) {
	began, has := t.sessions[p.Session]
	if !has {
		return otlp.Span{}, false
	}
	delete(t.sessions, p.Session)
	span := t.begin(semconv.OperationAgent, p.Agent, e.Scope, step.Step{At: began.At, Duration: e.At.Sub(began.At)})
	span.ID, span.Parent = t.agentSpan(p.Session), toolSpan(t.options.Task, p.Session)
	t.add(&span, semconv.Reason, string(p.Reason))
	if span.Failed = p.Reason != task.ReasonFinished; span.Failed {
		t.add(&span, semconv.ErrorType, string(p.Reason))
	}
	return span, true
}

// wait returns the span of a request that a user answered, or did not answer in time.
func (t *Tracer) wait(e events.Event, p events.Decided) (otlp.Span, bool) {
	asked, has := t.requests[p.Request]
	if !has {
		return otlp.Span{}, false
	}
	delete(t.requests, p.Request)
	request, _ := asked.Payload.(events.Pending)
	began := asked.At
	if at, err := time.Parse(time.RFC3339, request.AskedAt); err == nil && began.Sub(at) >= time.Second {
		began = at // in an earlier attempt; it is cut to the second
	}
	span := t.begin(semconv.OperationWait, request.Kind, asked.Scope, step.Step{At: began, Duration: e.At.Sub(began)})
	span.ID = otlp.SpanOf(t.options.Task.Run.UID, semconv.OperationWait, p.Request)
	t.add(&span, semconv.Request, p.Request)
	t.add(&span, semconv.RequestKind, request.Kind)
	return span, true
}

// begin returns a span in a session, with the attributes that all have.
func (t *Tracer) begin(operation, name string, scope step.Scope, s step.Step) otlp.Span {
	span := otlp.Span{Trace: t.trace, Parent: t.agentSpan(scope.Parent), Start: s.At, End: s.At.Add(s.Duration)}
	span.Name = strings.TrimSpace(operation + " " + t.text(name, maxText))
	t.add(&span, semconv.OperationName, operation)
	t.add(&span, semconv.ConversationID, strings.TrimSuffix(t.options.Task.Run.UID+"/"+scope.Parent, "/"))
	t.add(&span, semconv.AgentName, cmp.Or(scope.Agent, t.options.Snapshot.Agent.Name))
	t.add(&span, semconv.Run, t.options.Task.Run.Name)
	span.Attributes = append(span.Attributes, otlp.Attribute{Key: semconv.Attempt, Value: int64(t.options.Task.Attempt)})
	return span
}

// add adds a text unless it is empty. Secrets are replaced.
func (t *Tracer) add(span *otlp.Span, key, text string) {
	if text != "" {
		span.Attributes = append(span.Attributes, otlp.Attribute{Key: key, Value: t.text(text, maxText)})
	}
}

func (t *Tracer) addContent(span *otlp.Span, key, text string) {
	if text != "" {
		span.Attributes = append(span.Attributes, otlp.Attribute{Key: key, Value: t.text(text, maxContent)})
	}
}

// text replaces secrets before it cuts: the rest of a secret that is cut would not be found.
func (t *Tracer) text(s string, most int) string { return task.Cut(t.options.Redact.String(s), most) }

// Traceparent returns the function that makes the header traceparent of a tool call, so that a server can put its own
// spans below the span of the call. Nil: the task sends no traces.
// https://www.w3.org/TR/trace-context/#traceparent-header
func Traceparent(t task.Task) func(callID string) string {
	if t.Traces == nil || t.Traces.Endpoint == "" {
		return nil
	}
	trace := otlp.TraceOf(cmp.Or(t.Traces.Root, t.Run.UID))
	return func(callID string) string {
		span := toolSpan(t, callID)
		return "00-" + hex.EncodeToString(trace[:]) + "-" + hex.EncodeToString(span[:]) + "-01"
	}
}

// toolSpan returns the span of a tool call.
func toolSpan(t task.Task, callID string) otlp.SpanID {
	return otlp.SpanOf(t.Run.UID, semconv.OperationTool, callID)
}

// finishReason returns the word of the conventions.
func finishReason(f step.Finish) string {
	switch f {
	case step.FinishCalls:
		return "tool_call"
	case step.FinishRefusal:
		return "content_filter"
	case step.FinishOther:
		return "error"
	case step.FinishStop, step.FinishLength:
		return string(f)
	}
	return string(f)
}

// usage returns tokens and cost. A cost that is not known is absent.
func usage(u step.Usage) []otlp.Attribute {
	all := []otlp.Attribute{{Key: semconv.InputTokens, Value: u.InputTokens}, {Key: semconv.OutputTokens, Value: u.OutputTokens}}
	for _, a := range []otlp.Attribute{{Key: semconv.CacheReadTokens, Value: u.CacheReadTokens}, {Key: semconv.CacheWriteTokens, Value: u.CacheWriteTokens}, {Key: semconv.ReasoningTokens, Value: u.ReasoningTokens}} {
		if a.Value != int64(0) {
			all = append(all, a)
		}
	}
	if u.Priced {
		all = append(all, otlp.Attribute{Key: semconv.CostUSD, Value: float64(u.CostMicroUSD) / 1e6})
	}
	return all
}

// A message is an output message in the form of the conventions.
type message struct {
	Role   string `json:"role"`
	Parts  []part `json:"parts"`
	Finish string `json:"finish_reason,omitempty"`
}

type part struct {
	Type      string          `json:"type"`
	Content   string          `json:"content,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// messages returns the answer of a model, without its reasoning.
func messages(s step.Step) json.RawMessage {
	m := message{Role: "assistant", Finish: finishReason(s.Finish)}
	if text := s.Text(); text != "" {
		m.Parts = append(m.Parts, part{Type: "text", Content: text})
	}
	for _, c := range s.Calls {
		m.Parts = append(m.Parts, part{Type: "tool_call", ID: c.ID, Name: c.Name, Arguments: c.Args})
	}
	out, err := json.Marshal([]message{m})
	if err != nil {
		return nil // arguments that are not JSON
	}
	return out
}

// The histograms of the conventions, with the buckets that they name.
var (
	tokenUsage = &otlp.Histogram{
		Name: semconv.TokenUsage, Unit: "{token}", Description: "Tokens of model calls, by type.",
		Bounds: []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864},
	}
	operationDuration = &otlp.Histogram{
		Name: semconv.OperationDuration, Unit: "s", Description: "Durations of model calls.",
		Bounds: []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92},
	}
)

// measure counts a model call in the histograms, if the task wants them. Their attributes come from
// the configuration of the Run, so their combinations are few.
func (t *Tracer) measure(s step.Step) {
	if !t.options.Task.Traces.Metrics {
		return
	}
	model := t.models[s.Model]
	call := []otlp.Attribute{
		{Key: semconv.OperationName, Value: semconv.OperationChat},
		{Key: semconv.ProviderName, Value: providerOf(model)},
		{Key: semconv.RequestModel, Value: t.text(cmp.Or(model.Model, s.Model), maxText)},
		{Key: semconv.AgentName, Value: t.text(cmp.Or(s.Scope.Agent, t.options.Snapshot.Agent.Name), maxText)},
	}
	t.exporter.Record(operationDuration, s.Duration.Seconds(), call...)
	t.exporter.Record(tokenUsage, float64(s.Usage.InputTokens), append(slices.Clone(call), otlp.Attribute{Key: semconv.TokenType, Value: "input"})...)
	t.exporter.Record(tokenUsage, float64(s.Usage.OutputTokens), append(slices.Clone(call), otlp.Attribute{Key: semconv.TokenType, Value: "output"})...)
}

// providers are the names that the conventions have for providers; others keep theirs, in lower
// case.
var providers = map[string]string{"Azure": "azure.ai.openai", "Bedrock": "aws.bedrock", "Kimi": "moonshot_ai"}

// providerOf returns the name that the conventions have for the provider of a model.
func providerOf(m task.Model) string {
	return cmp.Or(providers[m.Provider], strings.ToLower(m.Provider))
}
