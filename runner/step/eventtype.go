package step

// EventType is the closed list of what may happen.
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
