package runmetrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// maxLabels is the maximum number of labels of a metric.
const maxLabels = 4

// A family is a metric with its series. A series takes about 100 bytes, a tenth of a series in client_golang.
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

// add adds to the series with these label values. A counter ignores negative values and 0; a gauge drops a series that
// is 0.
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

// metrics returns the current series. The lock is not held while they are sent.
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

// Bounds of label values. Counters are never removed, so only the first values in a process have their own series, and
// all later values are counted together.
const (
	maxNamespaces = 300
	maxPairs      = 1000
	maxReasons    = 200
	// maxUntried is how many Agents of a namespace have series of their own although no Run of them had
	// an attempt. A Run may name an Agent that does not exist.
	maxUntried = 20
)

// other is the label value of values beyond a bound.
const other = "other"

// A bound remembers the values that have series of their own.
type bound struct {
	max   int
	mu    sync.Mutex
	known map[[3]string]bool
}

func newBound(limit int) *bound { return &bound{max: limit, known: map[[3]string]bool{}} }

func keyOf(values []string) (key [3]string) {
	copy(key[:], values)
	return key
}

// admit reports whether these values have series of their own.
func (b *bound) admit(values ...string) bool {
	key := keyOf(values)
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.known[key] && len(b.known) < b.max {
		b.known[key] = true
	}
	return b.known[key]
}

// knows reports whether these values have their own series already.
func (b *bound) knows(values ...string) bool {
	key := keyOf(values)
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.known[key]
}

var namespaces, agents, models, reasons = newBound(maxNamespaces), newBound(maxPairs), newBound(maxPairs), newBound(maxReasons)

// untried is how many Agents of each namespace were admitted before they had an attempt.
var untried = struct {
	mu    sync.Mutex
	count map[string]int
}{count: map[string]int{}}

func namespaceLabel(namespace string) string {
	if namespaces.admit(namespace) {
		return namespace
	}
	return other
}

func agentLabel(namespace string, run *v1alpha1.Run) string {
	agent := run.Spec.Agent
	switch {
	case agent == "" || namespace != other && agents.knows(namespace, agent):
		return agent
	case namespace == other || run.Status.Attempt == nil && !admitUntried(namespace) || !agents.admit(namespace, agent):
		return other
	}
	return agent
}

// admitUntried reports whether one more Agent of a namespace may have its own series.
func admitUntried(namespace string) bool {
	untried.mu.Lock()
	defer untried.mu.Unlock()
	if untried.count[namespace] == maxUntried {
		return false
	}
	untried.count[namespace]++
	return true
}

func modelLabel(namespace, agent, model string) string {
	if model == "" || namespace != other && agent != other && models.admit(namespace, agent, model) {
		return model
	}
	return other
}

func reasonLabel(reason string) string {
	if reasons.admit(reason) {
		return reason
	}
	return other
}
