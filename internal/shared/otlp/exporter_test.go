package otlp_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/internal/shared/otlp"
	"github.com/deckhand-dev/deckhand/internal/testing/otlptest"
)

func TestTheTraceOfARunIsItsUID(t *testing.T) {
	id := otlp.TraceOf("0af76519-16cd-43dd-8448-eb211c80319c")
	if id[0] != 0x0a || id[15] != 0x9c {
		t.Errorf("TraceOf() = %x", id)
	}
	if otlp.TraceOf("uid-1") == (otlp.TraceID{}) || otlp.TraceOf("uid-1") == otlp.TraceOf("uid-2") {
		t.Error("two UIDs have one trace")
	}
	if otlp.SpanOf("a", "b") == otlp.SpanOf("ab") {
		t.Error("spans are not told apart by their elements")
	}
}

func TestAnExporterDeliversWhatIsQueuedWhenItCloses(t *testing.T) {
	collector := otlptest.Start(t)
	e := otlp.New(otlp.Options{Endpoint: collector.URL + "/"})
	for range 300 {
		e.Export(otlp.Span{Trace: otlp.TraceOf("u"), ID: otlp.SpanOf("u"), Name: "x", Attributes: []otlp.Attribute{{Key: "k", Value: "\xff"}}})
	}
	e.Close(time.Minute)
	if n := len(collector.Spans()); n != 300 || e.Dropped() != 0 {
		t.Errorf("%d spans came, %d were dropped", n, e.Dropped())
	}
}

func TestACollectorThatFailsCostsOnlySpans(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"refuses": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) },
		"answers garbage": func(w http.ResponseWriter, _ *http.Request) {
			if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_, _ = c.Write([]byte("garbage"))
				_ = c.Close()
			}
		},
		"redirects": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/v1/traces", http.StatusFound) },
		"hangs": func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // only then the server sees that the client is gone
			<-r.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(answer)
			defer server.Close()
			var warnings int
			e := otlp.New(otlp.Options{Endpoint: server.URL, Warn: func(error) { warnings++ }})
			for range 5000 { // more than the queue has place for
				e.Export(otlp.Span{Name: "x"})
			}
			e.Record(&otlp.Histogram{Name: "y"}, 1)
			e.Close(10 * time.Millisecond)
			if e.Dropped() == 0 || warnings != 1 {
				t.Errorf("%d spans were dropped with %d warnings", e.Dropped(), warnings)
			}
		})
	}
}

func TestHistogramsAreSentWhenTheExporterCloses(t *testing.T) {
	collector := otlptest.Start(t)
	e := otlp.New(otlp.Options{Endpoint: collector.URL})
	seconds := &otlp.Histogram{Name: "duration", Unit: "s", Bounds: []float64{1, 2}}
	for _, n := range []float64{0, 1, 1.5, 2, 7} {
		e.Record(seconds, n, otlp.Attribute{Key: "of", Value: "a"})
	}
	e.Record(seconds, 3, otlp.Attribute{Key: "of", Value: "b"})
	e.Record(&otlp.Histogram{Name: "tokens", Unit: "{token}", Bounds: []float64{1}}, 5)
	for n := range 1000 { // of which most are too many
		e.Record(seconds, 1, otlp.Attribute{Key: "n", Value: int64(n)})
	}
	e.Close(time.Minute)
	got := collector.Histograms()
	want := []string{"duration of=a: 5 of 11.5 s in [2 2 1]", "duration of=b: 1 of 3 s in [0 0 1]"}
	if len(got) != 256 || !slices.Equal(got[:2], want) || got[len(got)-1] != "tokens: 1 of 5 {token} in [0 1]" {
		t.Errorf("%d series: %q … %q", len(got), got[:2], got[len(got)-1])
	}
}

func TestAnEndpointIsABaseURL(t *testing.T) {
	for endpoint, ok := range map[string]bool{
		"http://collector.monitoring.svc:4318": true, "https://otlp.example.com/prefix": true,
		"http://[::1]:65535": true, "http://x:0": false, "http://x:65536": false, "http://x/v1/traces": false, "http://x/v1/metrics/": false,
		"collector:4318": false, "http://u:p@x": false, "http://x?key=1": false, "ftp://x": false, "http://": false, "": false,
	} {
		if err := otlp.CheckEndpoint(endpoint); (err == nil) != ok {
			t.Errorf("CheckEndpoint(%q) = %v", endpoint, err)
		}
	}
}
