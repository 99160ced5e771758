package responses

import (
	"context"
	"iter"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/provider"
)

// A Config configures the model and the differences of its provider.
type Config struct {
	provider.Options
	// Base is the URL above /responses, Query the query of its requests.
	Base, Query string
	// Model is the endpoint's name of the model.
	Model string
	// Idle is the default of the waits for an answer.
	Idle time.Duration
	// KeyHeaders are the headers of a key, with the prefix of each.
	KeyHeaders map[string]string
	// CacheKey reports whether prompt_cache_key is sent.
	CacheKey bool
	// Verbatim reports whether arguments that are not JSON are sent as the model wrote them, so
	// that it sees its mistake. Some servers parse them and would refuse the session.
	Verbatim bool
	// Files are the provider's limits of images and documents.
	Files httpapi.FileLimits
	// IsSampled reports whether temperature and top_p are sent at a level of reasoning.
	IsSampled func(model.Reasoning) bool
}

// New returns a Model behind an endpoint of the Responses API.
func New(c Config) model.Model {
	return &client{Config: c, endpoint: httpapi.New(c.Options, c.Idle, c.KeyHeaders), files: httpapi.FileLog{Limits: c.Files}}
}

// A client is a Model.
type client struct {
	Config
	endpoint *httpapi.Client
	repairs  httpapi.RepairLog
	refused  httpapi.RefusedReasoning
	files    httpapi.FileLog
}

// Stream sends one request. If the stream breaks, an estimated Usage precedes the error.
func (c *client) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	return c.endpoint.Join(func(yield func(model.Delta, error) bool) {
		x := &exchange{client: c, Call: c.endpoint.Begin(ctx), req: req}
		defer x.End()
		a, wanted := &answer{}, true
		receive := func() error {
			*a = answer{exchange: x}
			if a.cause = x.send(); a.cause == nil {
				wanted, a.cause = x.answer.Relay(a, yield)
			}
			return a.refusal()
		}
		if x.repeat(receive, func(d model.Delta) bool { return yield(d, nil) }) && wanted {
			a.emitEnd(yield)
		}
	})
}
