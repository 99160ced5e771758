package otlp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

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
	// maxAnswer bounds what is read of an answer.
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
	// Now is the time of histograms; nil: that of the machine.
	Now func() time.Time
}

// An Exporter sends spans and histograms in the background. Nothing waits for it: it drops what the
// collector does not accept, and what does not fit into its queue.
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

// Record counts a value of a histogram with attributes, of which there are few combinations.
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

// Dropped is how many spans were not delivered so far.
func (e *Exporter) Dropped() int64 { return e.dropped.Load() }

// Close sends what is queued and counted, at most as long as timeout. It is called once; what is
// exported or recorded after it is not sent.
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

// drain sends a batch and what is queued.
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

// sendHistograms sends once what was counted since the last time.
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

// warn tells the first failure.
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
