package monitoring_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runmetrics"
)

// rendered returns the object of a kind that the chart renders, with all of monitoring enabled.
func rendered(t *testing.T, kind, name string) []byte {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "../../bin/tools/helm", "template", "deckhand", "../../charts/deckhand",
		"--show-only=templates/monitoring.yaml",
		"--set=monitoring.alerts.enabled=true,monitoring.dashboard.enabled=true,monitoring.alerts.costPerHourUSD=50").Output()
	if err != nil {
		t.Fatal(err)
	}
	for text := range strings.SplitSeq(string(out), "\n---\n") {
		var o struct {
			Kind     string                `json:"kind"`
			Metadata struct{ Name string } `json:"metadata"`
		}
		if err := yaml.Unmarshal([]byte(text), &o); err != nil {
			t.Fatal(err)
		}
		if o.Kind == kind && o.Metadata.Name == name {
			return []byte(text)
		}
	}
	t.Fatalf("no %s %s in\n%s", kind, name, out)
	return nil
}

// others are the metrics of other libraries in the process that are used here, with their labels.
var others = map[string][]string{
	"leader_election_master_status":             {"name"},
	"workqueue_depth":                           {"controller", "name", "priority"},
	"controller_runtime_reconcile_errors_total": {"controller"},
	"process_resident_memory_bytes":             {},
	"process_start_time_seconds":                {},
}

// ofTarget are the labels that Prometheus adds.
var ofTarget = []string{"job", "pod", "instance", "__name__"}

// known returns the labels of each metric, by name.
func known() map[string][]string {
	out := map[string][]string{}
	for _, f := range runmetrics.Families() {
		out[f.Name] = f.Labels
		if f.Type == "histogram" {
			out[f.Name+"_bucket"] = append(slices.Clone(f.Labels), "le")
		}
	}
	maps.Copy(out, others)
	return out
}

// checkQuery reports metrics, labels and reasons of a query that do not exist.
func checkQuery(t *testing.T, where, query string) {
	t.Helper()
	query = strings.NewReplacer("$__rate_interval", "5m", "$namespace", ".*").Replace(query)
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	metrics := known()
	var have []string
	for _, selectors := range parser.ExtractSelectors(expr) {
		have = append(have, checkSelector(t, where, selectors, metrics)...)
	}
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		if a, is := n.(*parser.AggregateExpr); is {
			for _, l := range a.Grouping {
				if !slices.Contains(have, l) {
					t.Errorf("%s: no metric has the label %s", where, l)
				}
			}
		}
		return nil
	})
}

// checkSelector returns the labels of the metric that a selector names.
func checkSelector(t *testing.T, where string, matchers []*labels.Matcher, metrics map[string][]string) []string {
	t.Helper()
	i := slices.IndexFunc(matchers, func(m *labels.Matcher) bool { return m.Name == "__name__" })
	of, exists := metrics[matchers[i].Value]
	if !exists {
		t.Errorf("%s: no metric %s", where, matchers[i].Value)
	}
	for _, m := range matchers {
		if !slices.Contains(of, m.Name) && !slices.Contains(ofTarget, m.Name) {
			t.Errorf("%s: %s has no label %s", where, matchers[i].Value, m.Name)
		}
		if m.Name == "reason" {
			checkReasons(t, where, m.Value)
		}
	}
	return of
}

func checkReasons(t *testing.T, where, pattern string) {
	t.Helper()
	reasons := slices.Concat(v1alpha1.ActiveReasons, v1alpha1.WaitingReasons, v1alpha1.FailureReasons, []string{v1alpha1.ReasonFinished})
	for reason := range strings.SplitSeq(pattern, "|") {
		if !slices.Contains(reasons, reason) {
			t.Errorf("%s: no reason %s", where, reason)
		}
	}
}

func TestDashboardUsesMetricsThatExist(t *testing.T) {
	var o struct {
		Metadata struct{ Labels map[string]string } `json:"metadata"`
		Data     map[string]string                  `json:"data"`
	}
	if err := yaml.Unmarshal(rendered(t, "ConfigMap", "deckhand-dashboard"), &o); err != nil {
		t.Fatal(err)
	}
	if o.Metadata.Labels["grafana_dashboard"] != "1" {
		t.Errorf("labels %v", o.Metadata.Labels)
	}
	var dashboard struct {
		Panels []struct {
			ID      int
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(o.Data["deckhand.json"]), &dashboard); err != nil {
		t.Fatal(err)
	}
	if len(dashboard.Panels) == 0 {
		t.Fatal("no panels")
	}
	for i, p := range dashboard.Panels {
		if p.ID != i+1 || len(p.Targets) == 0 {
			t.Errorf("panel %d (%s) has the id %d and %d queries", i+1, p.Title, p.ID, len(p.Targets))
		}
		for _, target := range p.Targets {
			checkQuery(t, p.Title, target.Expr)
		}
	}
}

// Each alert has a section on the page that says what to do.
func TestEachAlertIsOnThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var onPage []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(Deckhand[A-Za-z]+)` \\|").FindAllSubmatch(page, -1) {
		onPage = append(onPage, string(m[1]))
	}
	var alerts []string
	for _, rule := range rules(t) {
		alerts = append(alerts, rule.Alert)
		checkQuery(t, rule.Alert, rule.Expr)
	}
	if !slices.Equal(onPage, alerts) {
		t.Errorf("docs/metrics.md has %v, the chart %v", onPage, alerts)
	}
}
