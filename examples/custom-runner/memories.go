package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"os"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/backend/store"
	"github.com/deckhand-dev/deckhand/runner/config"
)

// maxAnswer bounds what is read of an answer.
const maxAnswer = 8 << 20

// newMemories keeps what agents remember in a service, where it outlives their
// pods; each agent of a namespace has its own. Where MEMORIES_URL is not set,
// memories end with the process.
func newMemories(s config.BackendSpec) (backend.Backend, error) {
	at := os.Getenv("MEMORIES_URL")
	if at == "" {
		return store.New(store.NewMemory(store.MemoryOptions{}), store.Options{}), nil
	}
	base, err := url.Parse(at)
	if err != nil {
		return nil, fmt.Errorf("reading MEMORIES_URL: %w", err)
	}
	return store.New(&cabinet{base: base.JoinPath(s.Run.Namespace, s.Agent.Name)}, store.Options{}), nil
}

// A cabinet keeps values in a service that speaks plain HTTP: a key is a path,
// its revision an ETag, and a list is JSON.
type cabinet struct{ base *url.URL }

// Get implements [store.KV].
func (c *cabinet) Get(ctx context.Context, key string) (store.Value, error) {
	data, revision, err := ask(ctx, http.MethodGet, c.at(key), nil, nil)
	return store.Value{Entry: store.Entry{Key: key, Size: int64(len(data)), Revision: revision}, Data: data}, err
}

// Put implements [store.KV].
func (c *cabinet) Put(ctx context.Context, key string, data []byte, when store.Revision) (store.Revision, error) {
	only := http.Header{"If-Match": {string(when)}}
	if when == store.None {
		only = http.Header{"If-None-Match": {"*"}}
	}
	_, revision, err := ask(ctx, http.MethodPut, c.at(key), data, only)
	return revision, err
}

// Delete implements [store.KV].
func (c *cabinet) Delete(ctx context.Context, key string, when store.Revision) error {
	_, _, err := ask(ctx, http.MethodDelete, c.at(key), nil, http.Header{"If-Match": {string(when)}})
	return err
}

// List implements [store.KV].
func (c *cabinet) List(ctx context.Context, prefix string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		all := *c.base
		all.RawQuery = url.Values{"prefix": {prefix}}.Encode()
		var found []store.Entry
		data, _, err := ask(ctx, http.MethodGet, &all, nil, nil)
		if err == nil {
			err = json.Unmarshal(data, &found)
		}
		if err != nil {
			yield(store.Entry{}, err)
			return
		}
		for _, e := range found {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// at is where a key is.
func (c *cabinet) at(key string) *url.URL { return c.base.JoinPath(url.PathEscape(key)) }

// statuses are what the service says, as errors of the port.
var statuses = map[int]error{
	http.StatusNotFound:            store.ErrNoKey,
	http.StatusPreconditionFailed:  store.ErrConflict,
	http.StatusInsufficientStorage: store.ErrFull,
}

// ask makes one request.
func ask(ctx context.Context, method string, at *url.URL, body []byte, only http.Header) ([]byte, store.Revision, error) {
	req, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(body))
	if err != nil {
		return nil, store.None, fmt.Errorf("asking for memories: %w", err)
	}
	maps.Copy(req.Header, only)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, store.None, err
	}
	defer resp.Body.Close()
	if err, known := statuses[resp.StatusCode]; known {
		return nil, store.None, err
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		return nil, store.None, fmt.Errorf("the memories answer %s", resp.Status)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return data, store.Revision(resp.Header.Get("ETag")), err
}
