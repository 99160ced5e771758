package httpapi

import (
	"net/http"

	"github.com/deckhand-dev/deckhand/runner/model"
)

// serverRules recognize an answer with HTTP 500 that describes a configuration, not a failure.
var serverRules = []rule{
	(*refusal).reasoningMissing, (*refusal).toolsWithReasoning, (*refusal).noTools, (*refusal).unknownField,
	(*refusal).roles, (*refusal).anyTool, (*refusal).serverSettings,
}

// transient are words of servers that may succeed later.
var transient = pattern(`try again|retry|temporar|later|overload|time[d]?[ -]?out|capacity|\bbusy|loading|unavailable|connection|unreachable|upstream|out of memory|internal (server )?error`)

// machine matches words about the hardware and the runtime of a server: such a message is not about the request.
var machine = pattern(`\bcuda|\bnccl|\brocm|\bhip\b|\bgpus?\b|\bdevices?\b|\bdrivers?\b|\bkernels?\b|\bworkers?\b|\bprocess(es)?\b|\bthreads?\b|engine ?core|\bengine\b|\bmemory\b|\bdisks?\b|no space|file ?system|\bi/o\b|\bnetwork|\bsockets?\b|\bdied\b|\bcrash|\bkilled\b|\btraceback\b`)

// serverCause returns the cause of an HTTP 500 or 501 that would occur again each time; empty: another request may
// succeed. Only a report in JSON comes from the server itself.
func (r *refusal) serverCause() model.Refusal {
	known := r.status == http.StatusInternalServerError || r.status == http.StatusNotImplemented
	if !known || !r.report.isJSON || transient().MatchString(r.lower) || machine().MatchString(r.lower) {
		return model.Refusal{}
	}
	return r.cause(serverRules...)
}

// flag matches a flag of a command line, setting other words about the configuration of a server: the template of its
// prompts.
var (
	flag    = pattern("(^|[\\s\"'(=`])--[a-z][a-z0-9-]+")
	setting = pattern(`template|jinja|raise_exception|at row \d+, column \d+`)
	// ofTemplate matches errors of a template that come from the request or from the template itself.
	ofTemplate = pattern(`raise_exception|jinja|at row \d+, column \d+|template.*(\broles?\b|\bmessages?\b|\btools?\b|undefined|syntax)|(\broles?\b|\bmessages?\b|\btools?\b|undefined|syntax).*template`)
	// ofRequest matches words about the content of a request.
	ofRequest = pattern(`\btools?\b|\bfunctions?\b|\broles?\b|\bmessages?\b|param|argument|\bfields?\b|\bimages?\b|vision|multimodal|audio|\breasoning\b|\bthinking\b|streaming|chat completion|chat template|\bthis (model|server)\b`)
)

// serverSettings recognizes a server that is started in the wrong way.
func (r *refusal) serverSettings() (model.Refusal, bool) {
	found := flag().MatchString(r.lower)
	switch {
	case r.status < http.StatusInternalServerError:
		found = found || setting().MatchString(r.lower)
	case r.status == http.StatusNotImplemented || ofRequest().MatchString(r.lower):
		found = found || ofTemplate().MatchString(r.lower) || plainNegative().MatchString(r.lower)
	default:
		found = found || ofTemplate().MatchString(r.lower)
	}
	return model.Refusal{Cause: model.CauseServer}, found
}
