package api_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
)

const schedule = `{apiVersion: deckhand.dev/v1alpha1, kind: Schedule, metadata: {name: s}, spec: {schedule: 30 3 * * *, runTemplate: {spec: {agent: a, prompt: Do it.}}}}`

var scheduleCases = map[string]ruleCase{
	"a Schedule of an agent":                 {schedule, ``, ``},
	"a Schedule of a workflow":               {schedule, `spec: {runTemplate: {spec: {agent: null, prompt: null, workflow: w, input: {depth: 5}}}}`, ``},
	"everything that can be said":            {schedule, `spec: {timeZone: Europe/Berlin, concurrencyPolicy: Replace, suspend: true, startingDeadline: 1h, jitter: 15m, successfulRunsHistoryLimit: 0, failedRunsHistoryLimit: 100, runTemplate: {labels: {team: harbor, kueue.x-k8s.io/queue-name: q}}}`, ``},
	"a Schedule has times":                   {schedule, `spec: {schedule: null}`, "spec.schedule: Required"},
	"times are not empty":                    {schedule, `spec: {schedule: ""}`, "spec.schedule"},
	"times are short":                        {schedule, `spec: {schedule: "` + strings.Repeat("*", 129) + `"}`, "may not be more than 128"},
	"a zone has a field of its own":          {schedule, `spec: {schedule: TZ=UTC 0 3 * * *}`, "must not contain a time zone: write timeZone: Europe/Berlin"},
	"cron's other zone as well":              {schedule, `spec: {schedule: CRON_TZ=UTC 0 3 * * *}`, "must not contain a time zone: write timeZone: Europe/Berlin"},
	"an interval has no fixed times":         {schedule, `spec: {schedule: "@every 1h"}`, "must not be @every, which has no fixed times: write minutes and hours, for example */15 * * * *"},
	"a zone is not empty":                    {schedule, `spec: {timeZone: ""}`, "spec.timeZone"},
	"a zone is short":                        {schedule, `spec: {timeZone: "` + strings.Repeat("z", 65) + `"}`, "may not be more than 64"},
	"a concurrency policy is one of three":   {schedule, `spec: {concurrencyPolicy: Queue}`, `supported values: "Allow", "Forbid", "Replace"`},
	"a deadline is not too short":            {schedule, `spec: {startingDeadline: 9s}`, "must be at least 10s"},
	"a deadline has a unit":                  {schedule, `spec: {startingDeadline: "600"}`, "write 600s, or 10m for ten minutes"},
	"a jitter is at most a day":              {schedule, `spec: {jitter: 25h}`, "must be at most 24h"},
	"no history is kept by less than none":   {schedule, `spec: {successfulRunsHistoryLimit: -1}`, "greater than or equal to 0"},
	"a history of failures is bounded":       {schedule, `spec: {failedRunsHistoryLimit: 101}`, "less than or equal to 100"},
	"a Schedule makes something":             {schedule, `spec: {runTemplate: null}`, "spec.runTemplate: Required"},
	"what it makes is a Run":                 {schedule, `spec: {runTemplate: {spec: {workflow: w}}}`, "exactly one of agent and workflow is required: remove one of the two"},
	"a Run of it has something to do":        {schedule, `spec: {runTemplate: {spec: {prompt: null}}}`, "prompt or input is required for an agent: write prompt, or input as the Agent declares it"},
	"a Run of it has right limits":           {schedule, `spec: {runTemplate: {spec: {limits: {cost: 1EUR}}}}`, "write 1.50USD"},
	"a Run of it continues none":             {schedule, `spec: {runTemplate: {spec: {continueFrom: {run: first}}}}`, "continueFrom is not allowed in a Schedule: remove continueFrom"},
	"labels of ours are ours":                {schedule, `spec: {runTemplate: {labels: {deckhand.dev/workflow-node: x}}}`, "must not have the prefix deckhand.dev, which is reserved: choose another prefix"},
	"those below are too":                    {schedule, `spec: {runTemplate: {labels: {x.deckhand.dev/workflow-node: x}}}`, "must not have the prefix deckhand.dev, which is reserved: choose another prefix"},
	"those of others are not":                {schedule, `spec: {runTemplate: {labels: {notdeckhand.dev/workflow-node: x}}}`, ``},
	"a label is as long as a label may be":   {schedule, `spec: {runTemplate: {labels: {team: ` + strings.Repeat("t", 64) + `}}}`, "the name of a label must have at most 317 characters, and its value at most 63"},
	"there are not too many labels":          {schedule, `spec: {runTemplate: {labels: {` + labels(17) + `}}}`, "at most 16"},
	"its name leaves room for that of a Run": {schedule, `metadata: {name: ` + strings.Repeat("s", 53) + `}`, "at most 52 lower-case letters"},
	"its name has no dots":                   {schedule, `metadata: {name: s.t}`, "at most 52 lower-case letters, digits and -"},
	"a name may be that long":                {schedule, `metadata: {name: ` + strings.Repeat("s", 52) + `}`, ``},
	"an unknown field is refused by name":    {schedule, `spec: {cron: 0 3 * * *}`, `unknown field "spec.cron"`},
}

// labels are n of them, in YAML.
func labels(n int) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("l%d: v", i))
	}
	return strings.Join(out, ", ")
}

func TestRulesOfSchedules(t *testing.T) { holds(t, scheduleCases) }

func TestDefaultsOfSchedules(t *testing.T) {
	s := apitest.Get(t)
	o := object(t, schedule, "")
	o.SetNamespace(s.Namespace(t))
	s.Create(t, o)
	spec, _, _ := unstructured.NestedMap(o.Object, "spec")
	if got := fmt.Sprintln(spec["concurrencyPolicy"], spec["startingDeadline"], spec["successfulRunsHistoryLimit"], spec["failedRunsHistoryLimit"]); got != "Forbid 10m 3 5\n" {
		t.Errorf("defaults of a Schedule are %s", got)
	}
	if got := fmt.Sprint(o.Object["status"]); !strings.Contains(got, "type:Ready") || !strings.Contains(got, "reason:Pending") {
		t.Errorf("its status is %s", got)
	}
}
