package monitoring_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	promrules "github.com/prometheus/prometheus/rules"
	"sigs.k8s.io/yaml"
)

// rules returns the alerts of the chart, checked as Prometheus does.
func rules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	var o struct {
		Spec map[string]any `json:"spec"`
	}
	if err := yaml.Unmarshal(rendered(t, "PrometheusRule", "deckhand"), &o); err != nil {
		t.Fatal(err)
	}
	spec, err := yaml.Marshal(o.Spec)
	if err != nil {
		t.Fatal(err)
	}
	groups, errs := rulefmt.Parse(spec, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if len(errs) > 0 || len(groups.Groups) != 1 {
		t.Fatalf("%d groups, %v", len(groups.Groups), errs)
	}
	return groups.Groups[0].Rules
}

// leads is the metric without which [DeckhandHasNoLeader] fires.
const leads = "\n  leader_election_master_status{name=\"deckhand.deckhand.dev\"} 1+0x300"

// firing returns the alerts that fire at a time, after an evaluation each minute.
func firing(t *testing.T, all []rulefmt.Rule, series string, at time.Duration) []string {
	t.Helper()
	storage := promqltest.LoadedStorage(t, "load 1m\n  "+strings.TrimSpace(series)+"\n")
	t.Cleanup(func() { _ = storage.Close() })
	query := promrules.EngineQueryFunc(promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery), storage)
	var out []string
	for _, r := range all {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(r.Expr)
		if err != nil {
			t.Fatal(err)
		}
		alert := promrules.NewAlertingRule(r.Alert, expr, time.Duration(r.For), 0, labels.FromMap(r.Labels), labels.FromMap(r.Annotations), labels.EmptyLabels(), "", true, slog.New(slog.DiscardHandler))
		for now := time.Duration(0); now <= at; now += time.Minute {
			if _, err := alert.Eval(t.Context(), 0, time.Unix(0, 0).Add(now), query, nil, 0); err != nil {
				t.Fatalf("%s: %v", r.Alert, err)
			}
		}
		fires := slices.DeleteFunc(alert.ActiveAlerts(), func(a *promrules.Alert) bool { return a.State != promrules.StateFiring })
		for _, a := range fires {
			if summary := a.Annotations.Get("summary"); summary == "" || strings.Contains(a.Annotations.String(), "<error") {
				t.Errorf("%s: annotations %s", r.Alert, a.Annotations)
			}
		}
		if len(fires) > 0 {
			out = append(out, r.Alert)
		}
	}
	return out
}

func TestAlerts(t *testing.T) {
	cases := map[string]struct {
		series string // one sample a minute
		at     time.Duration
		want   []string // the alerts that fire
	}{
		"nothing happens":  {leads, 2 * time.Hour, nil},
		"no leader":        {`leader_election_master_status{name="deckhand.deckhand.dev"} 0+0x300`, 10 * time.Minute, []string{"DeckhandHasNoLeader"}},
		"no operator":      {`other 1+0x300`, 10 * time.Minute, []string{"DeckhandHasNoLeader"}},
		"a leader changes": {`leader_election_master_status{name="deckhand.deckhand.dev"} 1 0 1+0x300`, 2 * time.Minute, nil},

		"writes succeed":  {`deckhand_operator_writes_total{resource="runs",verb="patch",code="200"} 0+60x300` + leads, time.Hour, nil},
		"writes conflict": {`deckhand_operator_writes_total{resource="runs",verb="patch",code="409"} 0+60x300` + leads, time.Hour, nil},
		"writes are forbidden": {`deckhand_operator_writes_total{resource="pods",verb="create",code="403"} 0+60x300
  deckhand_operator_writes_total{resource="pods",verb="create",code="201"} 0+60x300` + leads, time.Hour, []string{"DeckhandWritesFail"}},

		"a Secret is missing":  {`deckhand_runs_active{namespace="a",agent="b",reason="SecretMissing"} 1+0x300` + leads, 20 * time.Minute, []string{"DeckhandRunsCannotStart"}},
		"it is there soon":     {`deckhand_runs_active{namespace="a",agent="b",reason="SecretMissing"} 1+0x5 _x300` + leads, 20 * time.Minute, nil},
		"Runs work":            {`deckhand_runs_active{namespace="a",agent="b",reason="Running"} 100+0x300` + leads, 5 * time.Hour, nil},
		"many Runs queue":      {`deckhand_runs_active{namespace="a",agent="b",reason="Queued"} 11+0x300` + leads, time.Hour, []string{"DeckhandRunsQueued"}},
		"a few Runs queue":     {`deckhand_runs_active{namespace="a",agent="b",reason="Queued"} 10+0x300` + leads, time.Hour, nil},
		"nobody approves":      {`deckhand_runs_active{namespace="a",agent="b",reason="AwaitingApproval"} 1+0x300` + leads, 61 * time.Minute, []string{"DeckhandRunsWaitForUsers"}},
		"somebody may approve": {`deckhand_runs_active{namespace="a",agent="b",reason="AwaitingApproval"} 1+0x300` + leads, 59 * time.Minute, nil},

		"a model is away":        {`deckhand_runs_active{namespace="a",agent="b",reason="WaitingForModel"} 1+0x300` + leads, 15 * time.Minute, []string{"DeckhandModelUnavailable"}},
		"a model restarts":       {`deckhand_runs_active{namespace="a",agent="b",reason="WaitingForModel"} 1+0x5 _x300` + leads, 20 * time.Minute, nil},
		"a model is unavailable": {`deckhand_runs_finished_total{namespace="a",agent="b",reason="ModelUnavailable"} 0+0.05x300` + leads, 30 * time.Minute, []string{"DeckhandModelUnavailable"}},

		"most Runs fail": {`deckhand_runs_finished_total{namespace="a",agent="b",reason="StepLimit"} 0+1x300
  deckhand_runs_finished_total{namespace="a",agent="b",reason="Finished"} 0+0.5x300` + leads, 2 * time.Hour, []string{"DeckhandRunsFail"}},
		"some Runs fail": {`deckhand_runs_finished_total{namespace="a",agent="b",reason="StepLimit"} 0+0.5x300
  deckhand_runs_finished_total{namespace="a",agent="b",reason="Finished"} 0+1x300` + leads, 2 * time.Hour, nil},
		"one Run of two fails": {`deckhand_runs_finished_total{namespace="a",agent="b",reason="StepLimit"} 0+0.03x300` + leads, 2 * time.Hour, nil},
		"Runs are stopped":     {`deckhand_runs_finished_total{namespace="a",agent="b",reason="Stopped"} 0+1x300` + leads, 2 * time.Hour, nil},

		"pods are lost":    {`deckhand_run_attempts_failed_total{namespace="a",agent="b",class="Disruption"} 0+0.5x300` + leads, 2 * time.Hour, []string{"DeckhandAttemptsLost"}},
		"attempts fail":    {`deckhand_run_attempts_failed_total{namespace="a",agent="b",class="Failure"} 0+0.5x300` + leads, 2 * time.Hour, nil},
		"Runs cost much":   {`deckhand_cost_usd_total{namespace="a",agent="b",model="c"} 0+1x300` + leads, 2 * time.Hour, []string{"DeckhandCostHigh"}},
		"Runs cost little": {`deckhand_cost_usd_total{namespace="a",agent="b",model="c"} 0+0.8x300` + leads, 2 * time.Hour, nil},
		"one Run costs much": {
			`process_start_time_seconds{instance="i"} 0+0x300
  deckhand_cost_usd_total{namespace="a",agent="b",model="c",instance="i"} _x80 80+0x300` + leads, 100 * time.Minute, []string{"DeckhandCostHigh"},
		},
		"an operator that is new": {
			`process_start_time_seconds{instance="i"} _x80 4800+0x300
  deckhand_cost_usd_total{namespace="a",agent="b",model="c",instance="i"} _x80 80+0x300` + leads, 100 * time.Minute, []string{"DeckhandCostHigh"},
		},
		"a Prometheus that is new": {
			`process_start_time_seconds{instance="i"} _x80 0+0x300
  deckhand_cost_usd_total{namespace="a",agent="b",model="c",instance="i"} _x80 80+0x300` + leads, 100 * time.Minute, nil,
		},
		"it is long ago": {
			`process_start_time_seconds{instance="i"} 0+0x300
  deckhand_cost_usd_total{namespace="a",agent="b",model="c",instance="i"} _x80 80+0x300` + leads, 150 * time.Minute, nil,
		},
		"the first five Runs fail": {
			`process_start_time_seconds{instance="i"} 0+0x300
  deckhand_runs_finished_total{namespace="a",agent="b",reason="StepLimit",instance="i"} _x80 5+0x300` + leads, 100 * time.Minute, []string{"DeckhandRunsFail"},
		},
		"the first Run has no price": {
			`process_start_time_seconds{instance="i"} 0+0x300
  deckhand_runs_without_cost_total{namespace="a",agent="b",model="c",instance="i"} _x80 1+0x300` + leads, 100 * time.Minute, []string{"DeckhandCostUnknown"},
		},
		"the first Run finds no model": {
			`process_start_time_seconds{instance="i"} 0+0x300
  deckhand_runs_finished_total{namespace="a",agent="b",reason="ModelUnavailable",instance="i"} _x80 1+0x300` + leads, 92 * time.Minute, []string{"DeckhandModelUnavailable"},
		},
		"prices are missing": {
			`deckhand_runs_without_cost_total{namespace="a",agent="b",model="c"} 0+0.1x300` + leads, 2 * time.Hour,
			[]string{"DeckhandCostUnknown"},
		},
	}
	all := rules(t)
	fired := map[string]bool{}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := firing(t, all, tc.series, tc.at)
			if !slices.Equal(got, tc.want) {
				t.Errorf("%v fire, want %v", got, tc.want)
			}
			for _, alert := range got {
				fired[alert] = true
			}
		})
	}
	for _, r := range all {
		if !fired[r.Alert] {
			t.Errorf("no case lets %s fire", r.Alert)
		}
	}
}
