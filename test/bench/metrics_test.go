//go:build bench

package bench

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// metrics are what a component serves at /metrics.
type metrics map[string][]series

// A series is one value with its labels.
type series struct {
	labels map[string]string
	value  float64
}

func parseMetrics(text []byte) (metrics, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(text)))
	if err != nil {
		return nil, fmt.Errorf("parsing metrics: %w", err)
	}
	out := metrics{}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			s := series{labels: map[string]string{}, value: m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue()}
			for _, l := range m.GetLabel() {
				s.labels[l.GetName()] = l.GetValue()
			}
			out[name] = append(out[name], s)
		}
	}
	return out, nil
}

// sum adds the series of a metric that have the labels, given as names and values.
func (m metrics) sum(name string, labels ...string) float64 {
	var sum float64
	for _, s := range m[name] {
		if s.has(labels) {
			sum += s.value
		}
	}
	return sum
}

func (s series) has(labels []string) bool {
	for l := range slices.Chunk(labels, 2) {
		if s.labels[l[0]] != l[1] {
			return false
		}
	}
	return true
}

func (r *fixture) serverMetrics() metrics {
	r.t.Helper()
	text, err := r.api.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(r.t.Context())
	if err != nil {
		r.t.Fatalf("reading the API server's metrics: %v", err)
	}
	m, err := parseMetrics(text)
	if err != nil {
		r.t.Fatal(err)
	}
	return m
}

const operatorNamespace = "deckhand-system"

// operatorPods are the operator's, the newest first.
func (r *fixture) operatorPods(ctx context.Context) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := r.client.List(ctx, &pods, client.InNamespace(operatorNamespace), client.MatchingLabels{"app.kubernetes.io/name": "deckhand"}); err != nil {
		return nil, fmt.Errorf("finding the operator: %w", err)
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return pods.Items, nil
}

func (r *fixture) operatorMetrics() metrics {
	r.t.Helper()
	m, err := r.scrapeOperator(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return m
}

// scrapeOperator reads the metrics of the newest pod of the operator, through the
// API server, which a NetworkPolicy does not shut out.
func (r *fixture) scrapeOperator(ctx context.Context) (metrics, error) {
	pods, err := r.operatorPods(ctx)
	if err != nil {
		return nil, err
	}
	if len(pods) == 0 {
		return nil, fmt.Errorf("no operator in namespace %s", operatorNamespace)
	}
	text, err := r.api.CoreV1().Pods(operatorNamespace).ProxyGet("http", pods[0].Name, "8080", "metrics", nil).DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the operator's metrics: %w", err)
	}
	return parseMetrics(text)
}
