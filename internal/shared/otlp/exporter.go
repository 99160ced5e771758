// Package otlp sends spans and histograms to an OpenTelemetry collector: OTLP in protobuf over HTTP. Operator
// and runner use it.
//
// Identifiers are derived from the UIDs of Runs, so that a span can name a parent that another
// process sends, and attempts of a Run are in one trace. The package is smaller than the SDK of
// OpenTelemetry, whose exporter imports gRPC.
package otlp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/deckhand-dev/deckhand/internal/shared/clock"
)

// The paths that are added to the endpoint (OTLP over HTTP).
const (
	tracesPath  = "/v1/traces"
	metricsPath = "/v1/metrics"
)

const (
	// queueSize is how many spans may wait; further spans are dropped.
	queueSize = 1024
	// batchSize is how many spans a request has at most.
	batchSize = 128
	// batchFor is how long a span waits for others.
	batchFor = 2 * time.Second
	// metricsEvery is how often histograms are sent.
	metricsEvery = time.Minute
	// requestFor bounds a request. A batch that is not accepted in time is dropped.
	requestFor = 5 * time.Second
	// maxAnswer bounds how much of a response is read.
	maxAnswer = 4 << 10
)

// Options are where spans and histograms go.
type Options struct {
	// Endpoint is the base URL of a collector, for example http://collector.monitoring.svc:4318.
	Endpoint string
	// Resource describes the process.
	Resource []Attribute
	// Warn is called with the first failure.
	Warn func(err error)
	// Now is the time of histograms; nil: the machine's.
	Now func() time.Time
}

// An Exporter sends spans and histograms in the background. Nothing waits for it: it drops data that the collector does
// not accept, or that does not fit into its queue.
type Exporter struct {
	options Options
	client  *http.Client
	queue   chan Span
	meter   meter
	closing chan struct{}
	done    chan struct{}
	cancel  context.CancelFunc
	dropped atomic.Int64
	warned  bool // of the goroutine that sends
}

// CheckEndpoint returns why a URL is not the base URL of a collector; nil: it is.
func CheckEndpoint(endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("the endpoint of traces is not a URL of a collector: write http://collector.monitoring.svc:4318, without credentials, query or fragment")
	}
	if port, err := strconv.ParseUint(u.Port(), 10, 16); u.Port() != "" && (err != nil || port == 0) {
		return fmt.Errorf("the endpoint of traces has port %s: write one from 1 to 65535", u.Port())
	}
	if path := strings.TrimSuffix(u.Path, "/"); strings.HasSuffix(path, tracesPath) || strings.HasSuffix(path, metricsPath) {
		return errors.New("the endpoint of traces ends in the path that is added to it: leave out /v1/traces")
	}
	return nil
}

// New starts an Exporter.
func New(o Options) *Exporter {
	o.Now = clock.Or(o.Now)
	ctx, cancel := context.WithCancel(context.Background())
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute}
	e := &Exporter{
		options: o, queue: make(chan Span, queueSize), closing: make(chan struct{}), done: make(chan struct{}), cancel: cancel,
		client: &http.Client{Transport: transport, Timeout: requestFor, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
	e.meter.since = o.Now()
	go e.run(ctx)
	return e
}

// Record adds a value to a histogram. The attributes must have few combinations.
func (e *Exporter) Record(h *Histogram, value float64, attributes ...Attribute) {
	e.meter.record(h, value, attributes)
}

// Export queues a span, or drops it if the queue is full.
func (e *Exporter) Export(s Span) {
	select {
	case e.queue <- s:
	default:
		e.dropped.Add(1)
	}
}

// Dropped returns how many spans were not delivered so far.
func (e *Exporter) Dropped() int64 { return e.dropped.Load() }

// Close sends queued spans and counts, at most as long as timeout. It must be called once; data that is added later is
// not sent.
func (e *Exporter) Close(timeout time.Duration) {
	close(e.closing)
	timer := time.AfterFunc(timeout, e.cancel)
	<-e.done
	timer.Stop()
	e.cancel()
	e.client.CloseIdleConnections()
}

func (e *Exporter) run(ctx context.Context) {
	defer close(e.done)
	ticker, metricsTicker := time.NewTicker(batchFor), time.NewTicker(metricsEvery)
	defer ticker.Stop()
	defer metricsTicker.Stop()
	var batch []Span
	for {
		select {
		case s := <-e.queue:
			if batch = append(batch, s); len(batch) < batchSize {
				continue
			}
		case <-ticker.C:
		case <-metricsTicker.C:
			e.sendHistograms(ctx)
			continue
		case <-e.closing:
			e.drain(ctx, batch)
			e.sendHistograms(ctx)
			return
		}
		e.send(ctx, batch)
		batch = batch[:0]
	}
}

// drain sends a batch and the queue.
func (e *Exporter) drain(ctx context.Context, batch []Span) {
	for {
		select {
		case s := <-e.queue:
			if batch = append(batch, s); len(batch) == batchSize {
				e.send(ctx, batch)
				batch = batch[:0]
			}
		default:
			e.send(ctx, batch)
			return
		}
	}
}

// send sends a batch once. It is not repeated: the next batch would wait for it.
func (e *Exporter) send(ctx context.Context, batch []Span) {
	if len(batch) == 0 {
		return
	}
	body, err := encode(e.options.Resource, batch)
	if err == nil {
		err = e.post(ctx, tracesPath, body)
	}
	if err != nil {
		e.dropped.Add(int64(len(batch)))
		e.warn("spans", err)
	}
}

// sendHistograms sends the counts since the last time.
func (e *Exporter) sendHistograms(ctx context.Context) {
	now := e.options.Now()
	all, since := e.meter.take(now)
	if len(all) == 0 {
		return
	}
	body, err := encodeHistograms(e.options.Resource, all, since, now)
	if err == nil {
		err = e.post(ctx, metricsPath, body)
	}
	if err != nil {
		e.warn("metrics", err)
	}
}

// warn logs the first failure.
func (e *Exporter) warn(what string, err error) {
	if !e.warned && e.options.Warn != nil {
		e.options.Warn(fmt.Errorf("sending %s to %s: %w", what, e.options.Endpoint, err))
	}
	e.warned = true
}

func (e *Exporter) post(ctx context.Context, path string, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(e.options.Endpoint, "/")+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	response, err := e.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, maxAnswer) // so that the connection can be used again
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("the collector answered %s", response.Status) //nolint:err113 // for a log
	}
	return nil
}

// A TraceID identifies a trace.
type TraceID [16]byte

// A SpanID identifies a span. The zero SpanID identifies none.
type SpanID [8]byte

// TraceOf returns the trace of a Run without a parent: its UID without the dashes. A text that is not a UUID is hashed.
func TraceOf(uid string) (id TraceID) {
	if digits := strings.ReplaceAll(uid, "-", ""); len(digits) == 2*len(id) {
		if _, err := hex.Decode(id[:], []byte(digits)); err == nil && id != (TraceID{}) {
			return id
		}
	}
	hash := sha256.Sum256([]byte(uid))
	copy(id[:], hash[:])
	return id
}

// SpanOf returns the span of a Run, or with further elements the span of a part of it.
func SpanOf(uid string, elements ...string) (id SpanID) {
	hash := sha256.New()
	for _, e := range append([]string{uid}, elements...) {
		hash.Write([]byte(e))
		hash.Write([]byte{0})
	}
	copy(id[:], hash.Sum(nil))
	return id
}

// A Span is work with a beginning and an end.
type Span struct {
	Trace      TraceID
	ID, Parent SpanID
	Name       string
	// Client marks a request to another process.
	Client     bool
	Start, End time.Time
	Attributes []Attribute
	// Failed sets the status Error.
	Failed bool
}

// An Attribute has a value that is a string, an int64, a float64, or a []string.
type Attribute struct {
	Key   string
	Value any
}

// encode encodes spans of one process as an ExportTraceServiceRequest. TracesData has the same form in protobuf,
// without importing gRPC.
func encode(of []Attribute, spans []Span) ([]byte, error) {
	scope := &trace.ScopeSpans{Scope: &common.InstrumentationScope{Name: "deckhand"}}
	for i := range spans {
		scope.Spans = append(scope.Spans, spans[i].encode())
	}
	return proto.Marshal(&trace.TracesData{ResourceSpans: []*trace.ResourceSpans{{
		Resource: &resource.Resource{Attributes: encodeAttributes(of)}, ScopeSpans: []*trace.ScopeSpans{scope},
	}}})
}

func (s *Span) encode() *trace.Span {
	out := &trace.Span{
		TraceId: s.Trace[:], SpanId: s.ID[:], Name: s.Name, Kind: trace.Span_SPAN_KIND_INTERNAL,
		StartTimeUnixNano: nanoseconds(s.Start), EndTimeUnixNano: max(nanoseconds(s.Start), nanoseconds(s.End)),
		Attributes: encodeAttributes(s.Attributes),
	}
	if s.Parent != (SpanID{}) {
		out.ParentSpanId = s.Parent[:]
	}
	if s.Client {
		out.Kind = trace.Span_SPAN_KIND_CLIENT
	}
	if s.Failed {
		out.Status = &trace.Status{Code: trace.Status_STATUS_CODE_ERROR}
	}
	return out
}

// nanoseconds returns the Unix time; 0 if it is before 1970 or unknown.
func nanoseconds(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	return uint64(max(t.UnixNano(), 0))
}

func encodeAttributes(all []Attribute) []*common.KeyValue {
	out := make([]*common.KeyValue, 0, len(all))
	for _, a := range all {
		out = append(out, &common.KeyValue{Key: a.Key, Value: encodeValue(a.Value)})
	}
	return out
}

func encodeValue(v any) *common.AnyValue {
	switch v := v.(type) {
	case string:
		return &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: strings.ToValidUTF8(v, "\uFFFD")}}
	case int64:
		return &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: v}}
	case float64:
		return &common.AnyValue{Value: &common.AnyValue_DoubleValue{DoubleValue: v}}
	case []string:
		list := &common.ArrayValue{}
		for _, s := range v {
			list.Values = append(list.Values, encodeValue(s))
		}
		return &common.AnyValue{Value: &common.AnyValue_ArrayValue{ArrayValue: list}}
	}
	return &common.AnyValue{}
}

// maxSeries bounds the combinations of attributes of all histograms; values of further ones are
// dropped.
const maxSeries = 256

// A Histogram is a metric whose values are counted in buckets.
type Histogram struct {
	Name, Unit, Description string
	// Bounds are the upper bounds of the buckets, in ascending order. One more bucket is for greater values.
	Bounds []float64
}

// A series has the counts of a Histogram for one combination of attributes.
type series struct {
	of            *Histogram
	attributes    []Attribute
	buckets       []uint64
	sum, min, max float64
}

func (s *series) add(value float64) {
	bucket, _ := slices.BinarySearch(s.of.Bounds, value) // a bound belongs to the bucket below it
	s.buckets[bucket]++
	s.sum += value
	s.min, s.max = min(s.min, value), max(s.max, value)
}

// A meter counts values between two exports.
type meter struct {
	mu    sync.Mutex
	since time.Time
	named map[string]*series
	order []*series
}

func (m *meter) record(h *Histogram, value float64, attributes []Attribute) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := fmt.Sprint(h.Name, attributes)
	s := m.named[key]
	if s == nil {
		if len(m.order) == maxSeries {
			return
		}
		s = &series{of: h, attributes: attributes, buckets: make([]uint64, len(h.Bounds)+1), min: value, max: value}
		if m.named == nil {
			m.named = map[string]*series{}
		}
		m.named[key], m.order = s, append(m.order, s)
	}
	s.add(value)
}

// take returns the counts since the last time, and since when, and resets them.
func (m *meter) take(now time.Time) (all []*series, since time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all, since = m.order, m.since
	m.named, m.order, m.since = nil, nil, now
	return all, since
}

// encodeHistograms encodes the counts of one process in a period as an ExportMetricsServiceRequest. MetricsData has the
// same form in protobuf. The counts are for this period only, because runners are short-lived.
func encodeHistograms(of []Attribute, all []*series, from, until time.Time) ([]byte, error) {
	scope := &metrics.ScopeMetrics{Scope: &common.InstrumentationScope{Name: "deckhand"}}
	points := map[string]*metrics.Histogram{}
	for _, s := range all {
		h := points[s.of.Name]
		if h == nil {
			h = &metrics.Histogram{AggregationTemporality: metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA}
			points[s.of.Name] = h
			scope.Metrics = append(scope.Metrics, &metrics.Metric{
				Name: s.of.Name, Unit: s.of.Unit, Description: s.of.Description, Data: &metrics.Metric_Histogram{Histogram: h},
			})
		}
		h.DataPoints = append(h.DataPoints, s.encode(from, until))
	}
	return proto.Marshal(&metrics.MetricsData{ResourceMetrics: []*metrics.ResourceMetrics{{
		Resource: &resource.Resource{Attributes: encodeAttributes(of)}, ScopeMetrics: []*metrics.ScopeMetrics{scope},
	}}})
}

func (s *series) encode(from, until time.Time) *metrics.HistogramDataPoint {
	point := &metrics.HistogramDataPoint{
		StartTimeUnixNano: nanoseconds(from), TimeUnixNano: nanoseconds(until), Attributes: encodeAttributes(s.attributes),
		Sum: &s.sum, Min: &s.min, Max: &s.max, BucketCounts: s.buckets, ExplicitBounds: s.of.Bounds,
	}
	for _, n := range s.buckets {
		point.Count += n
	}
	return point
}
