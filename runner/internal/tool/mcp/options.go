package mcp

import (
	"cmp"
	"net/http"
	"time"

	"github.com/deckhand-dev/deckhand/internal/shared/clock"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/auth"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Options are what a Server is made of.
type Options struct {
	// Toolset says where the server is. It has Stdio or HTTP.
	Toolset task.Toolset
	// Sandbox starts the program of a Toolset with Stdio.
	Sandbox sandbox.Sandbox
	// Client is what a Toolset with HTTP is reached by. Nil: one that reaches
	// everything but this machine, its link and metadata services.
	Client *http.Client
	// Key reads a key of a Secret, each time anew.
	Key func(task.SecretKey) (string, error)
	// Learn is called with each secret that is sent, for the redactor. May be nil.
	Learn func(redact.Secret)
	// Log is called with one line about a server that works
	// nevertheless. It may be called by several goroutines. May be nil.
	Log func(text string)
	// ConnectTimeout is how long a server may take to come up, or to come back. Zero:
	// DefaultConnectTimeout.
	ConnectTimeout time.Duration
	// Traceparent makes the trace context that is sent with a call; nil: none is sent.
	Traceparent func(callID string) string
	// Now is the time; nil: that of the machine.
	Now func() time.Time
}

// DefaultConnectTimeout is how long a server may take to come up.
const DefaultConnectTimeout = 30 * time.Second

// What is taken from a server.
const (
	maxMessage     = 16 << 20  // bytes of one message
	maxStream      = 256 << 20 // bytes of one stream of messages over HTTP
	maxTools       = 256       // tools that a model is offered
	maxOffered     = 1024      // tools that are read from a server
	maxPages       = 64        // pages of a list
	maxSchema      = 64 << 10  // bytes of a schema
	maxCatalog     = 8 << 20   // bytes of all schemas and descriptions
	maxDescription = 4 << 10   // bytes of a description
	maxResult      = 1 << 20   // bytes of a result, as the model reads it
	maxQuote       = 300       // bytes of a text from a server in a line of ours
	maxErrorBody   = 64 << 10  // bytes of an answer with the status of an error
	maxErrorText   = 2 << 10   // bytes of what a program said before it ended
)

// How long things may take.
const (
	defaultTimeout   = 120 * time.Second // for a call in which nothing happens
	maxCall          = 6 * time.Hour     // for a call in which something does
	handshakeTimeout = 10 * time.Second  // for one try to begin a session over HTTP
	discoveryTimeout = 5 * time.Second   // for the answer to a question that old servers do not know
	closeTimeout     = 2 * time.Second   // for a server to end by itself
	endGrace         = time.Second       // for a server to end that no longer reads
	pingTimeout      = 5 * time.Second   // for the answer of a server that a call waited for in vain
	firstBackoff     = 250 * time.Millisecond
	maxBackoff       = 8 * time.Second
)

// maxFailures is how often in a row a program may break before it is no longer
// started.
const maxFailures = 5

func (o Options) withDefaults() Options {
	o.ConnectTimeout = cmp.Or(o.ConnectTimeout, DefaultConnectTimeout)
	o.Now = clock.Or(o.Now)
	if o.Log == nil {
		o.Log = func(string) {}
	}
	if o.Client == nil {
		o.Client = auth.NewClient()
	}
	return o
}

// timeout is how long nothing may happen in a call.
func (o Options) timeout() time.Duration {
	if s := o.Toolset.TimeoutSeconds; s > 0 {
		return min(time.Duration(min(s, int64(maxCall/time.Second)))*time.Second, maxCall)
	}
	return defaultTimeout
}
