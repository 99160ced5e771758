package snapshot_test

import (
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/runner/task"
)

func TestARunOnlyLowersLimits(t *testing.T) {
	agent := v1alpha1.AgentLimits{Limits: v1alpha1.Limits{
		Steps: new(int32(20)), ToolCalls: new(int32(5)), Tokens: new(v1alpha1.Tokens("200k")), Cost: new(v1alpha1.Money("1.50USD")),
		Duration: new(v1alpha1.Duration("30m")), Depth: new(int32(1)), ModelOutage: new(v1alpha1.Duration("0s")), Deadline: new(v1alpha1.Duration("2h")),
	}}
	workflow := &v1alpha1.WorkflowLimits{Tokens: new(v1alpha1.Tokens("1M"))}
	for name, tc := range map[string]struct {
		run  *v1alpha1.Limits
		most snapshot.Most
		want string
	}{
		"none":                {nil, snapshot.MostOf(agent), ""},
		"all the same":        {&agent.Limits, snapshot.MostOf(agent), ""},
		"lower":               {&v1alpha1.Limits{Steps: new(int32(1)), Tokens: new(v1alpha1.Tokens("1k")), Depth: new(int32(0))}, snapshot.MostOf(agent), ""},
		"where there is none": {&v1alpha1.Limits{ModelCalls: new(int32(9)), Deadline: new(v1alpha1.Duration("700h")), Cost: new(v1alpha1.Money("9USD"))}, snapshot.MostOf(v1alpha1.AgentLimits{}), ""},
		"above": {
			&v1alpha1.Limits{Steps: new(int32(21))}, snapshot.MostOf(agent),
			"spec.limits.steps is 21, and Agent fixer allows 20. A Run only lowers limits: write at most that, or raise the limits of the Agent",
		},
		"above a default": {
			&v1alpha1.Limits{Steps: new(int32(31)), Pending: new(v1alpha1.Duration("11m"))}, snapshot.MostOf(v1alpha1.AgentLimits{}),
			"spec.limits.steps is 31, and Agent fixer allows 30; spec.limits.pending is 11m, and Agent fixer allows 10m0s. A Run only lowers limits: write at most that, or raise the limits of the Agent",
		},
		"above in each unit": {
			&v1alpha1.Limits{
				ToolCalls: new(int32(6)), Tokens: new(v1alpha1.Tokens("201k")), Cost: new(v1alpha1.Money("1.500001USD")), Duration: new(v1alpha1.Duration("31m")),
				Depth: new(int32(2)), ModelOutage: new(v1alpha1.Duration("1s")), Deadline: new(v1alpha1.Duration("3h")),
			}, snapshot.MostOf(agent),
			"spec.limits.toolCalls is 6, and Agent fixer allows 5; spec.limits.tokens is 201k, and Agent fixer allows 200000; " +
				"spec.limits.cost is 1.500001USD, and Agent fixer allows 1.50USD; spec.limits.duration is 31m, and Agent fixer allows 30m0s; spec.limits.deadline is 3h, and Agent fixer allows 2h0m0s; " +
				"spec.limits.depth is 2, and Agent fixer allows 1; spec.limits.modelOutage is 1s, and Agent fixer allows 0s. A Run only lowers limits: write at most that, or raise the limits of the Agent",
		},
		"pending of a Workflow": {
			&v1alpha1.Limits{Pending: new(v1alpha1.Duration("20m"))}, snapshot.MostOfWorkflow(&v1alpha1.WorkflowLimits{Pending: new(v1alpha1.Duration("20m"))}), "",
		},
		"above the default of a Workflow": {
			&v1alpha1.Limits{Pending: new(v1alpha1.Duration("20m"))}, snapshot.MostOfWorkflow(nil),
			"spec.limits.pending is 20m, and Agent fixer allows 10m0s. A Run only lowers limits: write at most that, or raise the limits of the Agent",
		},
		"a Workflow without that limit": {&v1alpha1.Limits{Steps: new(int32(10_000))}, snapshot.MostOfWorkflow(nil), ""},
		"above a Workflow": {
			&v1alpha1.Limits{Tokens: new(v1alpha1.Tokens("2M"))}, snapshot.MostOfWorkflow(workflow),
			"spec.limits.tokens is 2M, and Agent fixer allows 1000000. A Run only lowers limits: write at most that, or raise the limits of the Agent",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if p := snapshot.CheckLimits(tc.run, tc.most, "Agent fixer"); p != nil {
				got = p.Message
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestARevisionHasTheLimitsOfItsAgent(t *testing.T) {
	if got := snapshot.MostOf(v1alpha1.AgentLimits{Limits: v1alpha1.Limits{Deadline: new(v1alpha1.Duration("1h"))}}); got.Pending != 10*time.Minute || got.Deadline != time.Hour || got.Steps != 30 {
		t.Errorf("the limits are %+v", got)
	}
}

func TestARunWithALimitOfCostNeedsPrices(t *testing.T) {
	cost := &v1alpha1.Limits{Cost: new(v1alpha1.Money("1USD"))}
	models := []task.Model{{Name: "priced", Prices: &task.Prices{}}, {Name: "free"}}
	for name, tc := range map[string]struct {
		run    *v1alpha1.Limits
		models []task.Model
		want   string
	}{
		"no limits":             {nil, models, ""},
		"no limit of cost":      {&v1alpha1.Limits{Steps: new(int32(1))}, models, ""},
		"prices":                {cost, models[:1], ""},
		"a Model without price": {cost, models, `spec.limits.cost needs to know what Model "free" costs. Set spec.prices of the Model, or remove limits.cost`},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if p := snapshot.CheckCost(tc.run, tc.models); p != nil {
				got = p.Message
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}
