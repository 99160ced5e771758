package otlp

import (
	"fmt"
	"slices"
	"sync"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/proto"
)

// maxSeries bounds the combinations of attributes of all histograms; values of further ones are
// dropped.
const maxSeries = 256

// A Histogram is a metric whose values are counted in buckets.
type Histogram struct {
	Name, Unit, Description string
	// Bounds are the upper bounds of the buckets, in ascending order. One more bucket is for
	// what is greater.
	Bounds []float64
}

// A series is what was counted of a Histogram with the same attributes.
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

// take returns what was counted since the last time, and since when; it begins anew.
func (m *meter) take(now time.Time) (all []*series, since time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all, since = m.order, m.since
	m.named, m.order, m.since = nil, nil, now
	return all, since
}

// encodeHistograms returns what one process counted in a time as an ExportMetricsServiceRequest.
// MetricsData has the same form in protobuf. The counts are those of this time alone, because a
// runner is gone soon after it began.
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
