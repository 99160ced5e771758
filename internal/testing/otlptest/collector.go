// Package otlptest has a collector for tests.
package otlptest

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A Collector keeps the spans and histograms that it is sent. Its zero value is empty.
type Collector struct {
	URL string // of a Collector that Start started

	mu         sync.Mutex
	spans      []*trace.Span
	histograms []*metrics.Metric
	raw        []byte
}

// Start starts a Collector, which ends with the test.
func Start(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

// ServeHTTP accepts spans and metrics in protobuf.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil && r.Header.Get("Content-Type") == "application/x-protobuf" && c.keep(r.URL.Path, body) == nil {
		return
	}
	http.Error(w, "neither spans nor metrics", http.StatusBadRequest)
}

var errPath = errors.New("unknown path")

// keep adds the spans or histograms of a request.
func (c *Collector) keep(path string, body []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw = append(c.raw, body...)
	switch path {
	case "/v1/traces":
		var data trace.TracesData
		if err := proto.Unmarshal(body, &data); err != nil {
			return err
		}
		for _, resource := range data.GetResourceSpans() {
			for _, scope := range resource.GetScopeSpans() {
				c.spans = append(c.spans, scope.GetSpans()...)
			}
		}
		return nil
	case "/v1/metrics":
		var data metrics.MetricsData
		if err := proto.Unmarshal(body, &data); err != nil {
			return err
		}
		for _, resource := range data.GetResourceMetrics() {
			for _, scope := range resource.GetScopeMetrics() {
				c.histograms = append(c.histograms, scope.GetMetrics()...)
			}
		}
		return nil
	}
	return errPath
}

// Histograms returns a line for each series that was sent, with its attributes, its count and its
// sum, in the order in which they came.
func (c *Collector) Histograms() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var lines []string
	for _, m := range c.histograms {
		for _, p := range m.GetHistogram().GetDataPoints() {
			var line strings.Builder
			line.WriteString(m.GetName())
			for _, a := range p.GetAttributes() {
				fmt.Fprintf(&line, " %s=%s", a.GetKey(), text(a.GetValue()))
			}
			fmt.Fprintf(&line, ": %d of %g %s in %d", p.GetCount(), p.GetSum(), m.GetUnit(), p.GetBucketCounts())
			lines = append(lines, line.String())
		}
	}
	return lines
}

// Sent returns all bytes that were sent.
func (c *Collector) Sent() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return string(c.raw)
}

// Spans returns the received spans.
func (c *Collector) Spans() []*trace.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// Tree prints the spans of all traces as a tree, siblings in the order of their times, with the
// attributes of some keys. A span whose parent was not sent is below "(not sent)".
func (c *Collector) Tree(keys ...string) string {
	below, known := map[string][]*trace.Span{}, map[string]bool{}
	for _, s := range c.Spans() {
		id, parent := string(s.GetTraceId())+string(s.GetSpanId()), string(s.GetTraceId())+string(s.GetParentSpanId())
		below[parent], known[id] = append(below[parent], s), true
	}
	var out strings.Builder
	var missing []string
	for parent := range below {
		if !known[parent] {
			missing = append(missing, parent)
		}
	}
	slices.Sort(missing)
	for _, parent := range missing {
		fmt.Fprintf(&out, "trace %x\n", parent[:16])
		indent := "  "
		if len(parent) > 16 {
			fmt.Fprintf(&out, "  (not sent)\n")
			indent = "    "
		}
		printSpans(&out, below, parent, indent, keys)
	}
	return out.String()
}

func printSpans(out *strings.Builder, below map[string][]*trace.Span, parent, indent string, keys []string) {
	spans := below[parent]
	slices.SortStableFunc(spans, func(a, b *trace.Span) int {
		return cmp.Compare(a.GetStartTimeUnixNano(), b.GetStartTimeUnixNano())
	})
	for _, s := range spans {
		fmt.Fprint(out, indent, s.GetName())
		for _, a := range s.GetAttributes() {
			if slices.Contains(keys, a.GetKey()) {
				fmt.Fprintf(out, " %s=%s", a.GetKey(), text(a.GetValue()))
			}
		}
		if s.GetStatus().GetCode() == trace.Status_STATUS_CODE_ERROR {
			fmt.Fprint(out, " (error)")
		}
		fmt.Fprintln(out)
		printSpans(out, below, string(s.GetTraceId())+string(s.GetSpanId()), indent+"  ", keys)
	}
}

func text(v *common.AnyValue) string {
	switch v := v.GetValue().(type) {
	case *common.AnyValue_StringValue:
		return v.StringValue
	case *common.AnyValue_IntValue:
		return fmt.Sprint(v.IntValue)
	case *common.AnyValue_DoubleValue:
		return fmt.Sprint(v.DoubleValue)
	}
	return v.String()
}
