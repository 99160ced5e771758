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
	"github.com/deckhand-dev/deckhand/runner/registry"
)

// maxAnswer bounds the bytes that are read of a response.
const maxAnswer = 8 << 20

// newMemories returns a driver that keeps the memories of agents in a service,
// so that they outlive the pod. Each agent of a namespace has its own. If
// MEMORIES_URL is not set, memories are kept in the memory of the process.
func newMemories(_ context.Context, s registry.BackendSpec) (backend.Driver, error) {
	at := os.Getenv("MEMORIES_URL")
	if at == "" {
		return store.New(store.NewMemory(store.MemoryOptions{}), store.Options{}), nil
	}
	base, err := url.Parse(at)
	if err != nil {
		return nil, fmt.Errorf("reading MEMORIES_URL: %w", err)
	}
	return store.New(&httpKV{base: base.JoinPath(s.Run.Namespace, s.Agent.Name)}, store.Options{}), nil
}

// httpKV is a store.KV in a service with an HTTP API: a key is a path, its
// revision an ETag, and a list is JSON.
type httpKV struct{ base *url.URL }

// Get implements [store.KV].
func (h *httpKV) Get(ctx context.Context, key string) (store.Value, error) {
	data, revision, err := request(ctx, http.MethodGet, h.urlOf(key), nil, nil)
	return store.Value{Entry: store.Entry{Key: key, Size: int64(len(data)), Revision: revision}, Data: data}, err
}

// Put implements [store.KV].
func (h *httpKV) Put(ctx context.Context, key string, data []byte, when store.Revision) (store.Revision, error) {
	only := http.Header{"If-Match": {string(when)}}
	if when == store.None {
		only = http.Header{"If-None-Match": {"*"}}
	}
	_, revision, err := request(ctx, http.MethodPut, h.urlOf(key), data, only)
	return revision, err
}

// Delete implements [store.KV].
func (h *httpKV) Delete(ctx context.Context, key string, when store.Revision) error {
	_, _, err := request(ctx, http.MethodDelete, h.urlOf(key), nil, http.Header{"If-Match": {string(when)}})
	return err
}

// List implements [store.KV].
func (h *httpKV) List(ctx context.Context, prefix string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		all := *h.base
		all.RawQuery = url.Values{"prefix": {prefix}}.Encode()
		var found []store.Entry
		data, _, err := request(ctx, http.MethodGet, &all, nil, nil)
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

// urlOf returns the URL of a key.
func (h *httpKV) urlOf(key string) *url.URL { return h.base.JoinPath(url.PathEscape(key)) }

// statuses maps the statuses of the service to the errors of store.KV.
var statuses = map[int]error{
	http.StatusNotFound:            store.ErrNoKey,
	http.StatusPreconditionFailed:  store.ErrConflict,
	http.StatusInsufficientStorage: store.ErrFull,
}

// request sends one request and returns the body and the ETag of the response.
func request(ctx context.Context, method string, at *url.URL, body []byte, only http.Header) ([]byte, store.Revision, error) {
	req, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(body))
	if err != nil {
		return nil, store.None, fmt.Errorf("requesting memories: %w", err)
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
		return nil, store.None, fmt.Errorf("the memories service answered %s", resp.Status)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return data, store.Revision(resp.Header.Get("ETag")), err
}
