package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// signer returns the spec of a Model behind the gateway.
func signer(endpoint string) registry.ModelSpec {
	return registry.ModelSpec{
		Model: task.Model{
			Name: "m", Provider: "Custom", Driver: "gateway", Model: modeltest.ModelName, Endpoint: endpoint,
		},
		Key: func() (string, error) { return modeltest.Key, nil },
	}
}

// The conformance suite of OpenAI's API.
func TestTheGatewayIsAModel(t *testing.T) {
	modeltest.Run(t, func(t *testing.T, baseURL string) model.Model {
		t.Helper()
		m, err := newGateway(t.Context(), signer(baseURL))
		if err != nil {
			t.Fatal(err)
		}
		return m
	})
}

func TestTheGatewaySigns(t *testing.T) {
	var body []byte
	var signature string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		signature = r.Header.Get("X-Signature")
	}))
	t.Cleanup(server.Close)
	m, err := newGateway(t.Context(), signer(server.URL+"/v1"))
	if err != nil {
		t.Fatal(err)
	}
	req := &model.Request{Steps: []step.Step{said(step.RoleUser, "Hi")}}
	_, _ = model.Collect(m.Stream(t.Context(), req), nil) // it answers nothing
	if want := sign(modeltest.Key, body); signature != want || len(body) == 0 {
		t.Errorf("a body of %d bytes is signed %q, want %q", len(body), signature, want)
	}
	if _, err := newGateway(t.Context(), registry.ModelSpec{}); err == nil {
		t.Error("it signs without a key")
	}
}
