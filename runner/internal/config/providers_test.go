package config

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/model/wiretest"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// The timeouts of a Model reach each provider.
func TestTimeoutsReachTheProviders(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-over
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(over) })
	for name, factory := range providers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := factory(t.Context(), registry.ModelSpec{Model: task.Model{
				Name: "m", Provider: name, Model: "m", Endpoint: server.URL, Timeouts: task.ModelTimeouts{FirstByteSeconds: 1},
			}})
			if err != nil {
				t.Fatal(err)
			}
			_, err = model.Collect(m.Stream(t.Context(), wiretest.Ask), nil)
			got, _ := errors.AsType[*model.TimeoutError](err)
			if diff := cmp.Diff(&model.TimeoutError{Field: model.TimeoutFirstByte, After: time.Second}, got); diff != "" {
				t.Errorf("%v, -want +got:\n%s", err, diff)
			}
		})
	}
}
