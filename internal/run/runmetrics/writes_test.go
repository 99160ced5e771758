package runmetrics

import (
	"errors"
	"net/http"
	"testing"
)

type fakeTransport struct {
	code int
	err  error
}

func (f fakeTransport) RoundTrip(*http.Request) (*http.Response, error) {
	if f.err != nil {
		return nil, f.err
	}
	return &http.Response{StatusCode: f.code, Body: http.NoBody}, nil
}

func TestRequestsThatChangeObjectsAreCounted(t *testing.T) {
	reset(t)
	const run = "https://api/apis/deckhand.dev/v1alpha1/namespaces/team-a/runs/x"
	for _, r := range []struct {
		method, url string
		answer      fakeTransport
	}{
		{http.MethodPatch, run + "/status", fakeTransport{code: 200}},
		{http.MethodPatch, run + "/status", fakeTransport{code: 409}},
		{http.MethodPost, "https://api/api/v1/namespaces/team-a/pods", fakeTransport{code: 201}},
		{http.MethodDelete, "https://api/api/v1/namespaces/team-a/pods/x-1", fakeTransport{err: errors.New("connection refused")}},
		{http.MethodPost, "https://api/api/v1/namespaces", fakeTransport{code: 201}},
		{http.MethodGet, run, fakeTransport{code: 200}},
	} {
		request, err := http.NewRequestWithContext(t.Context(), r.method, r.url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := writeCounter{r.answer}.RoundTrip(request)
		if !errors.Is(err, r.answer.err) {
			t.Fatal(err)
		}
		if response != nil {
			_ = response.Body.Close()
		}
	}
	// Labels are sorted by name: code, resource, verb.
	expect(t, "deckhand_operator_writes_total", "0,pods,delete 1", "200,runs/status,patch 1", "201,namespaces,create 1", "201,pods,create 1", "409,runs/status,patch 1")
}
