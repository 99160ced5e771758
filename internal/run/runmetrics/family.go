package runmetrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// maxLabels is the most labels of a metric.
const maxLabels = 4

// A family is a metric with its series. A series takes about 100 bytes, a tenth of what those of
// client_golang take.
type family struct {
	Family

	desc *prometheus.Desc
	kind prometheus.ValueType

	mu     sync.Mutex
	series map[[maxLabels]string]float64
}

func counter(name, help string, labels ...string) *family {
	return newFamily(Family{name, "counter", help, labels}, prometheus.CounterValue)
}

func gauge(name, help string, labels ...string) *family {
	return newFamily(Family{name, "gauge", help, labels}, prometheus.GaugeValue)
}

func newFamily(f Family, kind prometheus.ValueType) *family {
	return &family{Family: f, kind: kind, desc: prometheus.NewDesc(f.Name, f.Help, f.Labels, nil), series: map[[maxLabels]string]float64{}}
}

// add adds to the series with these label values. A counter does not count what is not positive;
// a gauge forgets a series that is zero.
func (f *family) add(n float64, values ...string) {
	if f.kind == prometheus.CounterValue && n <= 0 {
		return
	}
	var key [maxLabels]string
	copy(key[:], values)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.series[key] += n
	if f.series[key] == 0 {
		delete(f.series, key)
	}
}

func (f *family) collect(to chan<- prometheus.Metric) {
	for _, m := range f.metrics() {
		to <- m
	}
}

// metrics returns the series as they are now. The lock is not held while they are sent.
func (f *family) metrics() []prometheus.Metric {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]prometheus.Metric, 0, len(f.series))
	for key, value := range f.series {
		m, err := prometheus.NewConstMetric(f.desc, f.kind, value, key[:len(f.Labels)]...)
		if err != nil {
			m = prometheus.NewInvalidMetric(f.desc, err)
		}
		out = append(out, m)
	}
	return out
}

// A histogramFamily is a histogram with the label namespace.
type histogramFamily struct {
	Family

	vec *prometheus.HistogramVec
}

func histogram(name, help string, buckets []float64) *histogramFamily {
	labels := []string{"namespace"}
	return &histogramFamily{
		Family{name, "histogram", help, labels},
		prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels),
	}
}
