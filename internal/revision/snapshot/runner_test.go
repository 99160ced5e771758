package snapshot_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Everything that an Agent may say reaches the runner.
func TestRunnerReadsWhatAnAgentSays(t *testing.T) {
	timeout, wait, zero := v1alpha1.Duration("2m"), v1alpha1.Duration("1h"), int32(0)
	half := v1alpha1.Decimal("0.5")
	agent := gen.Agent(func(a *v1alpha1.Agent) {
		a.Spec.Description = "Fixes."
		a.Spec.Inference = &v1alpha1.Inference{TopP: &half}
		a.Spec.Routes = []v1alpha1.Route{{For: v1alpha1.RouteTurn, Model: "large", When: "turn > 9"}, {For: v1alpha1.RouteRepair, Model: "small"}, {For: v1alpha1.RouteTurn, Model: "gpt"}}
		a.Spec.Input = &v1alpha1.Input{Schema: rawOf(`{ "type": "object" }`)}
		a.Spec.Output = &v1alpha1.Output{Files: []string{"report.md"}}
		a.Spec.Workspace.AgentsFile = v1alpha1.AgentsFileIgnore
		a.Spec.Limits = v1alpha1.AgentLimits{Limits: v1alpha1.Limits{Depth: &zero, Wait: &wait}, WhenReached: v1alpha1.WhenReachedAsk}
		a.Spec.Tools = []v1alpha1.Tool{
			{Builtin: v1alpha1.BuiltinHTTPRequest, HTTPRequest: &v1alpha1.WebTool{Hosts: []v1alpha1.Host{"*.example.com"}}, Timeout: &timeout},
			{Builtin: v1alpha1.BuiltinBrowse, Browse: &v1alpha1.WebTool{Hosts: []v1alpha1.Host{"wiki"}}},
			{Builtin: v1alpha1.BuiltinFiles, Allow: []string{"Read", "Grep"}},
			{Custom: "crm", Settings: &v1alpha1.CustomToolSettings{Endpoint: "https://crm.example", APIKeySecretRef: &v1alpha1.SecretKeyRef{Name: "crm", Key: "token"}}},
			{Builtin: v1alpha1.BuiltinWebSearch, WebSearch: &v1alpha1.WebSearchTool{Endpoint: "https://search.example", APIKeySecretRef: &v1alpha1.SecretKeyRef{Name: "tavily", Key: "key"}}},
			{Agent: "reviewer", Name: "review"},
			{Custom: "lint"},
		}
		a.Spec.Hooks = []v1alpha1.Hook{{
			Name: "guard", Point: v1alpha1.BeforeTool, URL: "https://hooks.example", Tools: []v1alpha1.ToolName{"lint"},
			Timeout: "10s", FailurePolicy: v1alpha1.FailurePolicyIgnore, TokenSecretRef: &v1alpha1.SecretKeyRef{Name: "hooks", Key: "token"},
		}}
	})
	got := of(t, agent, with(agents{named("reviewer")}, modelNamed("sonnet", "gpt"), modelNamed("gpt"), modelNamed("small", "gpt"), modelNamed("large", "small"))).Snapshot
	p := 0.5
	want := task.Agent{
		Name: "fixer", Description: "Fixes.", Instructions: "You fix what is broken.",
		Models: []string{"sonnet", "gpt"}, Routes: map[string][]string{"Repair": {"small", "gpt"}},
		TurnRoutes: []task.TurnRoute{{Models: []string{"large", "small"}, When: "turn > 9"}, {Models: []string{"gpt"}}},
		Tools: []task.Tool{
			{Builtin: "HTTPRequest", Hosts: []string{"*.example.com"}, TimeoutSeconds: 120},
			{Builtin: "Browse", Hosts: []string{"wiki"}},
			{Builtin: "Files", Allow: []string{"Read", "Grep"}},
			{Custom: "crm", Endpoint: "https://crm.example", SecretKey: task.SecretKey{Secret: "crm", Key: "token"}},
			{Builtin: "WebSearch", Endpoint: "https://search.example", SecretKey: task.SecretKey{Secret: "tavily", Key: "key"}},
			{Agent: "reviewer", Name: "review"},
			{Custom: "lint"},
		},
		Hooks: []task.Hook{{
			Name: "guard", Point: "BeforeTool", URL: "https://hooks.example", Tools: []string{"lint"},
			TimeoutSeconds: 10, Ignore: true, SecretKey: task.SecretKey{Secret: "hooks", Key: "token"},
		}},
		InputSchema:        json.RawMessage(`{"type":"object"}`),
		OutputFiles:        []string{"report.md"},
		ParallelTools:      10,
		Limits:             task.Limits{Steps: 30, Tokens: 2_000_000, DurationSeconds: 3600, WaitSeconds: 3600, Ask: true},
		IgnoreInstructions: true,
		Events:             "Full",
	}
	want.Params.TopP = &p
	if diff := cmp.Diff(want, got.Agent); diff != "" {
		t.Errorf("the Agent -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]snapshot.Secret{{Name: "crm", Keys: []string{"token"}}, {Name: "hooks", Keys: []string{"token"}}, {Name: "sonnet", Keys: []string{"api-key"}}, {Name: "tavily", Keys: []string{"key"}}}, snapshot.Secrets(got)); diff != "" {
		t.Errorf("Secrets -want +got:\n%s", diff)
	}
}

// Everything that a Model may say does.
func TestRunnerReadsWhatAModelSays(t *testing.T) {
	window, most, temperature := v1alpha1.Tokens("200k"), v1alpha1.Tokens("8k"), v1alpha1.Decimal("0.2")
	hour := v1alpha1.Duration("1h")
	cases := map[string]struct {
		spec v1alpha1.ModelSpec
		want task.Model
	}{
		"Azure": {
			v1alpha1.ModelSpec{Provider: v1alpha1.ProviderAzure, ModelID: "gpt-5", Azure: &v1alpha1.AzureModel{Deployment: "d", APIVersion: "v"}, Endpoint: "https://x.example"},
			task.Model{Provider: "Azure", Model: "gpt-5", Deployment: "d", APIVersion: "v", Endpoint: "https://x.example"},
		},
		"Bedrock in a region": {
			v1alpha1.ModelSpec{Provider: v1alpha1.ProviderBedrock, ModelID: "m", API: v1alpha1.APIMessages, Bedrock: &v1alpha1.BedrockModel{Region: "eu-central-1"}},
			task.Model{Provider: "Bedrock", Model: "m", Endpoint: "https://bedrock-runtime.eu-central-1.amazonaws.com"},
		},
		"Bedrock at an endpoint": {
			v1alpha1.ModelSpec{Provider: v1alpha1.ProviderBedrock, ModelID: "m", Bedrock: &v1alpha1.BedrockModel{Region: "eu-central-1"}, Endpoint: "https://vpce.example"},
			task.Model{Provider: "Bedrock", Model: "m", Endpoint: "https://vpce.example"},
		},
		"OpenAI, whose API the runner decides": {
			v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAI, ModelID: "m"}, task.Model{Provider: "OpenAI", Model: "m"},
		},
		"OpenAI with its older API": {
			v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAI, ModelID: "m", API: v1alpha1.APIChatCompletions},
			task.Model{Provider: "OpenAI", API: "ChatCompletions", Model: "m"},
		},
		"a compatible server with OpenAI's newer API": {
			v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAICompatible, ModelID: "m", API: v1alpha1.APIResponses, Endpoint: "https://x.example/v1"},
			task.Model{Provider: "OpenAICompatible", API: "Responses", Model: "m", Endpoint: "https://x.example/v1"},
		},
		"the only API of a provider": {
			v1alpha1.ModelSpec{Provider: v1alpha1.ProviderAnthropic, ModelID: "m", API: v1alpha1.APIMessages}, task.Model{Provider: "Anthropic", Model: "m"},
		},
		"the first API of a provider": {
			v1alpha1.ModelSpec{Provider: v1alpha1.ProviderDeepSeek, ModelID: "m", API: v1alpha1.APIChatCompletions}, task.Model{Provider: "DeepSeek", Model: "m"},
		},
		"another API": {
			v1alpha1.ModelSpec{Provider: v1alpha1.ProviderKimi, API: v1alpha1.APIMessages, ModelID: "k2"},
			task.Model{Provider: "Kimi", Format: "Anthropic", Model: "k2"},
		},
		"the other provider with two APIs": {
			v1alpha1.ModelSpec{Provider: v1alpha1.ProviderDeepSeek, API: v1alpha1.APIMessages, ModelID: "chat"},
			task.Model{Provider: "DeepSeek", Format: "Anthropic", Model: "chat"},
		},
		"a driver": {
			v1alpha1.ModelSpec{Provider: v1alpha1.ProviderCustom, Custom: &v1alpha1.CustomModel{Driver: "acme"}, ModelID: "m", ContextWindow: &window, MaxOutputTokens: &most, Headers: []v1alpha1.Header{{Name: "X-Team", Value: "a"}}},
			task.Model{Provider: "Custom", Driver: "acme", Model: "m", ContextWindow: 200_000, MaxOutputTokens: 8_000, Headers: map[string]string{"X-Team": "a"}},
		},
		"timeouts": {
			v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOllama, ModelID: "m", Timeouts: &v1alpha1.ModelTimeouts{FirstByte: &hour, Total: &hour}},
			task.Model{Provider: "Ollama", Model: "m", Timeouts: task.ModelTimeouts{FirstByteSeconds: 3600, TotalSeconds: 3600}},
		},
		"requests that are sent as they are": {
			v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAI, ModelID: "m", RequestRepair: v1alpha1.RequestRepairDisabled},
			task.Model{Provider: "OpenAI", Model: "m", RequestRepair: "Disabled"},
		},
		"requests that are repaired, as by default": {
			v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAI, ModelID: "m", RequestRepair: v1alpha1.RequestRepairEnabled},
			task.Model{Provider: "OpenAI", Model: "m"},
		},
		"inference, a key and prices": {
			v1alpha1.ModelSpec{
				Provider: v1alpha1.ProviderAnthropic, ModelID: "m", APIKeySecretRef: &v1alpha1.SecretKeyRef{Name: "s", Key: "k"},
				Prices: &v1alpha1.Prices{Input: "3USD", Output: "15USD"}, Inference: &v1alpha1.Inference{Temperature: &temperature, Reasoning: "Low", MaxOutputTokens: &most},
			},
			func() task.Model {
				m := task.Model{Provider: "Anthropic", Model: "m", SecretKey: task.SecretKey{Secret: "s", Key: "k"}, Prices: &task.Prices{Input: 3e6, Output: 15e6, CacheRead: 3e6, CacheWrite: 3e6}}
				fifth := 0.2
				m.Params.Temperature, m.Params.Reasoning, m.Params.MaxOutputTokens = &fifth, "Low", 8_000
				return m
			}(),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := of(t, gen.Agent(), gen.Objects(gen.Model(func(m *v1alpha1.Model) { m.Spec = tc.spec }))).Snapshot.Models[0]
			tc.want.Name = "sonnet"
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A custom runner may be built from a version before tiers, which refuses unknown fields.
func TestACustomRunnerIsGivenTheDearestPrices(t *testing.T) {
	cases := map[string]struct {
		spec v1alpha1.ModelSpec
		own  bool // tiers or changes of the operator's own runner
		want task.Prices
	}{
		"of the catalog, with tiers": {
			v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAI, ModelID: "gpt-5.4"},
			true,
			task.Prices{Input: 5e6, Output: 22.5e6, CacheRead: 500_000, CacheWrite: 5e6},
		},
		"of the catalog, with hours": {
			v1alpha1.ModelSpec{Provider: v1alpha1.ProviderDeepSeek, ModelID: "deepseek-v4-flash"},
			true,
			task.Prices{Input: 300_000, Output: 1_200_000, CacheRead: 6_000, CacheWrite: 300_000},
		},
		"of the Model, with a tier that is cheaper": {
			v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAI, ModelID: "m", Prices: &v1alpha1.Prices{
				Input: "3USD", Output: "15USD", Tiers: []v1alpha1.PriceTier{{Above: "200k", Input: "1USD", Output: "20USD"}},
			}},
			true,
			task.Prices{Input: 3e6, Output: 20e6, CacheRead: 3e6, CacheWrite: 3e6},
		},
		"of the Model, without tiers": {
			v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAI, ModelID: "m", Prices: &v1alpha1.Prices{Input: "3USD", Output: "15USD"}},
			false,
			task.Prices{Input: 3e6, Output: 15e6, CacheRead: 3e6, CacheWrite: 3e6},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := gen.Objects(gen.Model(func(m *v1alpha1.Model) { m.Spec = tc.spec }))
			custom := gen.Agent(func(a *v1alpha1.Agent) { a.Spec.PodTemplate = &v1alpha1.PodTemplate{RunnerImage: "r.example/own:1"} })
			got := of(t, custom, objects).Snapshot.Models[0].Prices
			if diff := cmp.Diff(&tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if own := of(t, gen.Agent(), objects).Snapshot.Models[0].Prices; len(own.Tiers)+len(own.Changes) > 0 != tc.own {
				t.Errorf("the operator's own runner is given %+v", own)
			}
		})
	}
}

// Each Agent and Model is there once, in an order that does not depend on who
// asks; the Agent itself is not among the others.
func TestAllThatIsReachedIsThereOnce(t *testing.T) {
	b := named("b", "fixer", "c")
	b.Spec.Model = "gpt"
	v := of(t, named("fixer", "c", "b"), with(agents{named("c", "b"), b}, modelNamed("sonnet", "small"), modelNamed("small"), modelNamed("gpt", "small"), modelNamed("stranger")))
	var got []string
	for _, a := range v.Snapshot.Agents {
		got = append(got, a.Name+": "+strings.Join(a.Models, " "))
	}
	for _, m := range v.Snapshot.Models {
		got = append(got, m.Name)
	}
	if diff := cmp.Diff([]string{"b: gpt small", "c: sonnet small", "sonnet", "small", "gpt"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A change of anything that is reached is another revision.
func TestVersionCoversAllThatIsReached(t *testing.T) {
	revision := func(mods ...func(snapshot.Objects)) string {
		o := with(agents{named("b")}, modelNamed("sonnet", "gpt"), modelNamed("gpt"))
		for _, mod := range mods {
			mod(o)
		}
		return of(t, named("fixer", "b"), o).Hash
	}
	base := revision()
	if revision() != base {
		t.Error("the same makes two revisions")
	}
	if revision(func(o snapshot.Objects) { o.Models["stranger"] = modelNamed("stranger") }) != base {
		t.Error("what is not reached makes another revision")
	}
	for what, mod := range map[string]func(snapshot.Objects){
		"another Agent": func(o snapshot.Objects) { o.Agents["b"].Spec.Instructions = "Other." },
		"its limits":    func(o snapshot.Objects) { *limited(o.Agents["b"]).Spec.Limits.Cost = "2USD" },
		"a fallback":    func(o snapshot.Objects) { o.Models["gpt"].Spec.ModelID = "other" },
		"the fallbacks": func(o snapshot.Objects) { o.Models["sonnet"].Spec.Fallbacks = nil },
	} {
		if revision(mod) == base {
			t.Errorf("%s may change without another revision", what)
		}
	}
}

func TestLimits(t *testing.T) {
	n := func(i int32) *int32 { return &i }
	none, short, hour, day := v1alpha1.Duration("0s"), v1alpha1.Duration("5m"), v1alpha1.Duration("1h"), v1alpha1.Duration("24h")
	outage := func(seconds int64) func(*task.Limits) {
		return func(l *task.Limits) { l.ModelOutageSeconds = &seconds }
	}
	few, many := v1alpha1.Tokens("500k"), v1alpha1.Tokens("3M")
	cheap, dear := v1alpha1.Money("1USD"), v1alpha1.Money("2USD")
	standard := task.Limits{Steps: 30, Tokens: 2_000_000, DurationSeconds: 3600, Depth: 3, WaitSeconds: 7 * 86400}
	cases := map[string]struct {
		agent, run v1alpha1.Limits
		atLimit    v1alpha1.WhenReached
		want       func(*task.Limits)
	}{
		"nothing said": {want: func(*task.Limits) {}},
		"an Agent says all": {
			agent: v1alpha1.Limits{Steps: n(5), ModelCalls: n(6), ToolCalls: n(7), Tokens: &many, Cost: &dear, Duration: &day, Depth: n(5), Wait: &hour}, atLimit: v1alpha1.WhenReachedAsk,
			want: func(l *task.Limits) {
				*l = task.Limits{Steps: 5, ModelCalls: 6, ToolCalls: 7, Tokens: 3_000_000, CostMicroUSD: 2_000_000, DurationSeconds: 86400, Depth: 5, WaitSeconds: 3600, Ask: true}
			},
		},
		"an Agent calls no others": {agent: v1alpha1.Limits{Depth: n(0)}, want: func(l *task.Limits) { l.Depth = 0 }},
		"a Run lowers all": {
			agent: v1alpha1.Limits{Cost: &dear, ModelCalls: n(9)},
			run:   v1alpha1.Limits{Steps: n(3), ModelCalls: n(4), ToolCalls: n(5), Tokens: &few, Cost: &cheap, Depth: n(0), Wait: &hour},
			want: func(l *task.Limits) {
				*l = task.Limits{Steps: 3, ModelCalls: 4, ToolCalls: 5, Tokens: 500_000, CostMicroUSD: 1_000_000, DurationSeconds: 3600, WaitSeconds: 3600}
			},
		},
		"a Run raises nothing": {
			agent: v1alpha1.Limits{Cost: &cheap, ModelCalls: n(2), Depth: n(0)},
			run:   v1alpha1.Limits{Steps: n(31), ModelCalls: n(4), Tokens: &many, Cost: &dear, Depth: n(5), Duration: &day},
			want:  func(l *task.Limits) { l.CostMicroUSD, l.ModelCalls, l.Depth = 1_000_000, 2, 0 },
		},
		"an Agent waits long for its model":            {agent: v1alpha1.Limits{ModelOutage: &day}, want: outage(86400)},
		"an Agent does not wait for its model":         {agent: v1alpha1.Limits{ModelOutage: &none}, want: outage(0)},
		"a Run lowers the default outage":              {run: v1alpha1.Limits{ModelOutage: &short}, want: outage(300)},
		"a Run does not raise the default outage":      {run: v1alpha1.Limits{ModelOutage: &hour}, want: outage(1800)},
		"a Run does not wait, whatever its Agent says": {agent: v1alpha1.Limits{ModelOutage: &day}, run: v1alpha1.Limits{ModelOutage: &none}, want: outage(0)},
		"a Run waits for less than its Agent":          {agent: v1alpha1.Limits{ModelOutage: &day}, run: v1alpha1.Limits{ModelOutage: &hour}, want: outage(3600)},
		"no Run waits if its Agent does not":           {agent: v1alpha1.Limits{ModelOutage: &none}, run: v1alpha1.Limits{ModelOutage: &day}, want: outage(0)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := standard
			tc.want(&want)
			if diff := cmp.Diff(want, snapshot.Lower(snapshot.LimitsOf(v1alpha1.AgentLimits{Limits: tc.agent, WhenReached: tc.atLimit}), tc.run)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
