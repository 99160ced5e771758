package snapshot_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// Mods of the objects of a test.

func raw(text string) runtime.RawExtension { return runtime.RawExtension{Raw: []byte(text)} }

func rawOf(text string) *runtime.RawExtension { return new(raw(text)) }

// named is an Agent that may give work to others.
func named(name string, others ...string) *v1alpha1.Agent {
	return gen.Agent(func(a *v1alpha1.Agent) {
		a.Name, a.Spec.Tools = name, nil
		for _, other := range others {
			a.Spec.Tools = append(a.Spec.Tools, v1alpha1.Tool{Agent: v1alpha1.ObjectName(other)})
		}
	})
}

// modelNamed is a Model with fallbacks.
func modelNamed(name string, fallbacks ...v1alpha1.ObjectName) *v1alpha1.Model {
	return gen.Model(func(m *v1alpha1.Model) { m.Name, m.Spec.Fallbacks = name, fallbacks })
}

func unpriced(m *v1alpha1.Model) *v1alpha1.Model {
	m.Spec.Prices = nil
	return m
}

func limited(a *v1alpha1.Agent) *v1alpha1.Agent {
	cost := v1alpha1.Money("1USD")
	a.Spec.Limits.Cost = &cost
	return a
}

func with(agents []*v1alpha1.Agent, models ...*v1alpha1.Model) snapshot.Objects {
	o := gen.Objects(models...)
	for _, a := range agents {
		o.Agents[a.Name] = a
	}
	return o
}

// row is n Agents, each of which may give work to the next.
func row(n int) []*v1alpha1.Agent {
	var out []*v1alpha1.Agent
	for i := range n {
		out = append(out, named(fmt.Sprintf("a%02d", i), fmt.Sprintf("a%02d", i+1)))
	}
	return append(out, named(fmt.Sprintf("a%02d", n)))
}

type agents = []*v1alpha1.Agent

func TestWhatKeepsAnAgentFromBeingReady(t *testing.T) {
	bent := func(mod func(*v1alpha1.AgentSpec)) *v1alpha1.Agent {
		return gen.Agent(func(a *v1alpha1.Agent) { mod(&a.Spec) })
	}
	tools := func(tools ...v1alpha1.Tool) *v1alpha1.Agent {
		return bent(func(s *v1alpha1.AgentSpec) { s.Tools = tools })
	}
	badExtra := func(text string) *v1alpha1.Inference {
		extra := raw(text)
		return &v1alpha1.Inference{Extra: &extra}
	}
	cases := map[string]struct {
		agent   *v1alpha1.Agent
		objects snapshot.Objects
		reason  string
		says    string
	}{
		"a Model that is not there": {gen.Agent(), gen.Objects(modelNamed("other")), v1alpha1.ReasonNotFound, `Model "sonnet" not found in namespace team-a; create it, or name another in spec.model`},
		"a Model of a route that is not there": {
			bent(func(s *v1alpha1.AgentSpec) {
				s.Routes = []v1alpha1.Route{{For: v1alpha1.RouteSummarize, Model: "small"}}
			}),
			gen.Objects(), v1alpha1.ReasonNotFound, `Model "small" not found in namespace team-a; create it, or name another in spec.routes`,
		},
		"a route for turns with a variable that is not there": {
			bent(func(s *v1alpha1.AgentSpec) {
				s.Routes = []v1alpha1.Route{{For: v1alpha1.RouteRepair, Model: "sonnet"}, {For: v1alpha1.RouteTurn, Model: "sonnet", When: "tokens > 5"}}
			}),
			gen.Objects(), v1alpha1.ReasonInvalid, "spec.routes[1].when: column 1: undeclared reference to 'tokens'; a condition reads turn, estimatedTokens,",
		},
		"a route for turns that is never true": {
			bent(func(s *v1alpha1.AgentSpec) {
				s.Routes = []v1alpha1.Route{{For: v1alpha1.RouteTurn, Model: "sonnet", When: "budgetLeft.cost > 5"}}
			}),
			gen.Objects(), v1alpha1.ReasonInvalid, "spec.routes[0].when: it is true in no turn",
		},
		"a route for turns behind one that always applies": {
			bent(func(s *v1alpha1.AgentSpec) {
				s.Routes = []v1alpha1.Route{{For: v1alpha1.RouteTurn, Model: "sonnet"}, {For: v1alpha1.RouteRepair, Model: "sonnet"}, {For: v1alpha1.RouteTurn, Model: "sonnet", When: "turn > 1"}}
			}),
			gen.Objects(), v1alpha1.ReasonInvalid, "spec.routes[2]: this route is never used: spec.routes[0] applies to every turn. Move it to the end",
		},
		"a cost and an unpriced Model of a route for turns": {
			limited(gen.Agent(func(a *v1alpha1.Agent) {
				a.Spec.Routes = []v1alpha1.Route{{For: v1alpha1.RouteTurn, Model: "gpt", When: "turn > 1"}}
			})),
			gen.Objects(gen.Model(), unpriced(modelNamed("gpt"))), v1alpha1.ReasonPricesMissing, `Model "gpt" costs`,
		},
		"a fallback that is not there":    {gen.Agent(), gen.Objects(modelNamed("sonnet", "gpt")), v1alpha1.ReasonNotReady, `Model "sonnet" is not ready: Model "gpt" not found in namespace team-a; create it, or remove it from spec.fallbacks`},
		"fallbacks in a circle":           {gen.Agent(), gen.Objects(modelNamed("sonnet", "gpt"), modelNamed("gpt", "sonnet")), v1alpha1.ReasonNotReady, "sonnet -> gpt -> sonnet"},
		"a fallback that is not ready":    {gen.Agent(), gen.Objects(modelNamed("sonnet", "gpt"), modelNamed("gpt", "gone")), v1alpha1.ReasonNotReady, `Model "gpt" is not ready: Model "gone" not found`},
		"extra parameters of its Model":   {gen.Agent(), gen.Objects(gen.Model(func(m *v1alpha1.Model) { m.Spec.Inference = badExtra(`[1]`) })), v1alpha1.ReasonNotReady, "must be an object"},
		"extra parameters of its own":     {bent(func(s *v1alpha1.AgentSpec) { s.Inference = badExtra(`[1]`) }), gen.Objects(), v1alpha1.ReasonInvalid, "must be an object"},
		"a cost without prices":           {limited(gen.Agent()), gen.Objects(unpriced(gen.Model())), v1alpha1.ReasonPricesMissing, `Model "sonnet" costs. Set spec.prices`},
		"a cost and an unpriced fallback": {limited(gen.Agent()), gen.Objects(modelNamed("sonnet", "gpt"), unpriced(modelNamed("gpt"))), v1alpha1.ReasonPricesMissing, `Model "gpt" costs`},
		"a cost and an unpriced Model of another Agent": {
			limited(named("fixer", "b")), with(agents{gen.Agent(func(a *v1alpha1.Agent) { a.Name, a.Spec.Model = "b", "gpt" })}, gen.Model(), unpriced(modelNamed("gpt"))),
			v1alpha1.ReasonPricesMissing, `Model "gpt" costs`,
		},
		"an Agent whose own cost cannot be counted": {
			named("fixer", "b"), with(agents{limited(named("b"))}, unpriced(gen.Model())),
			v1alpha1.ReasonNotReady, `Agent "b" is not ready: limits.cost needs to know what Model "sonnet" costs`,
		},
		"events, which log replaced": {bent(func(s *v1alpha1.AgentSpec) { s.Events = "None" }), gen.Objects(), v1alpha1.ReasonInvalid, "spec.events was replaced by spec.log: remove it, and write log: None"},
		"podRetention, which retention replaced": {
			bent(func(s *v1alpha1.AgentSpec) { s.PodRetention = "2h" }), gen.Objects(),
			v1alpha1.ReasonInvalid, "spec.podRetention was replaced by spec.retention: remove it, and write retention: {pod: 2h}",
		},
		"retain of the workspace, which retention replaced": {
			bent(func(s *v1alpha1.AgentSpec) { s.Workspace.Retain = "Never" }), gen.Objects(),
			v1alpha1.ReasonInvalid, "spec.workspace.retain was replaced by spec.retention: remove it, and write retention: {keepVolume: Never}",
		},
		"retention of the workspace, which retention replaced": {
			bent(func(s *v1alpha1.AgentSpec) { s.Workspace.Retention = "0s" }), gen.Objects(),
			v1alpha1.ReasonInvalid, "spec.workspace.retention was replaced by spec.retention: remove it, and write retention: {volume: 0s}",
		},
		"instructions of the workspace, which agentsFile replaced": {
			bent(func(s *v1alpha1.AgentSpec) { s.Workspace.Instructions = "Ignore" }), gen.Objects(),
			v1alpha1.ReasonInvalid, "spec.workspace.instructions was replaced by spec.workspace.agentsFile: remove it, and write agentsFile: Ignore",
		},
		"an input schema that is none": {bent(func(s *v1alpha1.AgentSpec) { s.Input = &v1alpha1.Input{Schema: rawOf(`{"type":"string"}`)} }), gen.Objects(), v1alpha1.ReasonInvalid, "spec.input.schema: type must be object"},
		"an output schema that is none": {bent(func(s *v1alpha1.AgentSpec) {
			s.Output = &v1alpha1.Output{Schema: raw(`{"type":"object","properties":{"a":{"$ref":"#/x"}}}`)}
		}), gen.Objects(), v1alpha1.ReasonInvalid, "$ref"},
		"a pattern of output files that is none": {bent(func(s *v1alpha1.AgentSpec) {
			s.Output = &v1alpha1.Output{Files: []string{"out/**/*.csv", "report[.md"}}
		}), gen.Objects(), v1alpha1.ReasonInvalid, `spec.output.files[1]: "report[.md" is not a valid pattern`},
		"instructions with an expression that does not compile": {
			gen.Agent(func(a *v1alpha1.Agent) { a.Spec.Instructions = "Do ${{ input.prompt.lowercase() }}." }), gen.Objects(),
			v1alpha1.ReasonInvalid, "spec.instructions: column 30: there is no function lowercase",
		},
		"instructions with an input that is not there": {
			bent(func(s *v1alpha1.AgentSpec) { s.Instructions = "Review ${{ input.file }}." }), gen.Objects(),
			v1alpha1.ReasonInvalid, "spec.instructions: column 18: there is no field file; input has prompt; Agent fixer declares no input: add spec.input to it",
		},
		"a custom tool called like a file tool": {tools(v1alpha1.Tool{Builtin: v1alpha1.BuiltinFiles}, v1alpha1.Tool{Custom: "x", Name: "read"}), gen.Objects(), v1alpha1.ReasonNameTaken, "custom x would be called read, as is builtin Files; give it another name"},
		"a hook of a tool that deny leaves out": {
			bent(func(s *v1alpha1.AgentSpec) {
				s.Tools = []v1alpha1.Tool{{Builtin: v1alpha1.BuiltinFiles, Deny: []string{"Write", "Edit"}}}
				s.Hooks = []v1alpha1.Hook{{Name: "veto", Point: v1alpha1.BeforeTool, URL: "http://hooks", Tools: []v1alpha1.ToolName{"Write"}}}
			}), gen.Objects(), v1alpha1.ReasonInvalid,
			"spec.hooks: veto is for the tool Write, which the agent does not have; the model calls its tools Finish, Reject, Read, Ls, Glob, Grep",
		},
		"a hook of a tool that is called otherwise": {
			bent(func(s *v1alpha1.AgentSpec) {
				s.Tools = []v1alpha1.Tool{{Builtin: v1alpha1.BuiltinFiles}, {Builtin: v1alpha1.BuiltinAsk}}
				s.Hooks = []v1alpha1.Hook{{Name: "veto", Point: v1alpha1.BeforeTool, URL: "http://hooks", Tools: []v1alpha1.ToolName{"Write", "ask"}}}
			}), gen.Objects(), v1alpha1.ReasonInvalid,
			"spec.hooks: veto is for the tool ask, which is called Ask: write Ask",
		},
		"a hook of a tool by its former name, with a runner that may have other tools": {
			bent(func(s *v1alpha1.AgentSpec) {
				s.Tools = []v1alpha1.Tool{{Builtin: v1alpha1.BuiltinAsk}}
				s.PodTemplate = &v1alpha1.PodTemplate{RunnerImage: "example.com/runner:1"}
				s.Hooks = []v1alpha1.Hook{{Name: "veto", Point: v1alpha1.BeforeTool, URL: "http://hooks", Tools: []v1alpha1.ToolName{"lookup", "ask"}}}
			}), gen.Objects(), v1alpha1.ReasonInvalid,
			"spec.hooks: veto is for the tool ask, which is called Ask: write Ask",
		},
		"a custom tool called like everybody's":  {tools(v1alpha1.Tool{Custom: "finish"}), gen.Objects(), v1alpha1.ReasonNameTaken, "as is a tool that every agent has"},
		"an Agent that is not there":             {named("fixer", "b"), gen.Objects(), v1alpha1.ReasonNotFound, `Agent "b" not found in namespace team-a (named by fixer)`},
		"an Agent of an Agent that is not there": {named("fixer", "b"), with(agents{named("b", "c")}), v1alpha1.ReasonNotFound, `Agent "c" not found in namespace team-a (named by fixer -> b); create it, or remove it from spec.tools of b`},
		"an Agent that is not ready": {
			named("fixer", "b"), with(agents{gen.Agent(func(a *v1alpha1.Agent) { a.Name, a.Spec.Model = "b", "gone" })}, gen.Model()),
			v1alpha1.ReasonNotReady, `Agent "b" is not ready: Model "gone" not found`,
		},
		"an Agent that needs another runner": {
			named("fixer", "b"), with(agents{gen.Agent(func(a *v1alpha1.Agent) {
				a.Name, a.Spec.Tools = "b", nil
				a.Spec.PodTemplate = &v1alpha1.PodTemplate{RunnerImage: "acme/runner:1"}
			})}, gen.Model()),
			v1alpha1.ReasonNotReady, `Agent "b" has the runner image acme/runner:1`,
		},
		"more Agents than fit": {named("fixer", "a00"), with(row(snapshot.MaxAgents)), v1alpha1.ReasonTooLarge, "more than 16 other Agents"},
		"more Secrets than fit": {
			bent(func(s *v1alpha1.AgentSpec) {
				for i := range snapshot.MaxSecrets {
					s.Hooks = append(s.Hooks, v1alpha1.Hook{Name: fmt.Sprint(i), TokenSecretRef: &v1alpha1.SecretKeyRef{Name: v1alpha1.ObjectName(fmt.Sprint(i)), Key: "k"}})
				}
			}), gen.Objects(), v1alpha1.ReasonTooLarge, "name 65 Secrets; at most 64",
		},
		"more text than fits": {
			named("fixer", "a00"), with(func() agents {
				all := row(snapshot.MaxAgents - 1)
				for _, a := range all {
					a.Spec.Instructions = strings.Repeat("x", 60<<10)
				}
				return all
			}()), v1alpha1.ReasonTooLarge, "at most 900 fit. Shorten the longest instructions and schemas: a00 60 KiB, a01 60 KiB, a02 60 KiB",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := snapshot.Of(tc.agent, tc.objects)
			var problem *snapshot.NotReadyError
			if !errors.As(err, &problem) || problem.Reason != tc.reason || !strings.Contains(problem.Message, tc.says) {
				t.Errorf("Of() = %v, want reason %s and %q", err, tc.reason, tc.says)
			}
		})
	}
}

func TestWhatDoesNotKeepAnAgentFromBeingReady(t *testing.T) {
	cases := map[string]struct {
		agent   *v1alpha1.Agent
		objects snapshot.Objects
	}{
		"itself as a tool":                 {named("fixer", "fixer"), gen.Objects()},
		"Agents in a circle":               {named("fixer", "b"), with(agents{named("b", "c"), named("c", "fixer", "b")})},
		"as many Agents as fit":            {named("fixer", "a00"), with(row(snapshot.MaxAgents - 1))},
		"one Agent on two ways":            {named("fixer", "b", "c"), with(agents{named("b", "d"), named("c", "d"), named("d")})},
		"fallbacks of one Model":           {gen.Agent(), gen.Objects(modelNamed("sonnet", "a", "b"), modelNamed("a", "b"), modelNamed("b"))},
		"no prices and no cost":            {named("fixer", "b"), with(agents{named("b")}, unpriced(gen.Model()))},
		"what the schema filled in before": {gen.Agent(func(a *v1alpha1.Agent) { a.Spec.Events, a.Spec.Workspace.Instructions = "Full", "Auto" }), gen.Objects()},
		"instructions with an input":       {gen.Agent(func(a *v1alpha1.Agent) { a.Spec.Instructions = "Do ${{ input.prompt }}, not $${{ this }}." }), gen.Objects()},
		"instructions with an expression":  {gen.Agent(func(a *v1alpha1.Agent) { a.Spec.Instructions = "Do ${{ input.prompt.lowerAscii() }}." }), gen.Objects()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := snapshot.Of(tc.agent, tc.objects); err != nil {
				t.Errorf("Of() = %v", err)
			}
		})
	}
}

func TestFallbacksOfAModel(t *testing.T) {
	cases := map[string]struct {
		models []*v1alpha1.Model // the first is checked
		want   string
	}{
		"none":                      {[]*v1alpha1.Model{modelNamed("a")}, ""},
		"one":                       {[]*v1alpha1.Model{modelNamed("a", "b"), modelNamed("b")}, ""},
		"one that is not there":     {[]*v1alpha1.Model{modelNamed("a", "b")}, `NotFound Model "b" not found`},
		"two that share one":        {[]*v1alpha1.Model{modelNamed("a", "b", "c"), modelNamed("b", "d"), modelNamed("c", "d"), modelNamed("d")}, ""},
		"a circle":                  {[]*v1alpha1.Model{modelNamed("a", "b"), modelNamed("b", "a")}, "Cycle The fallbacks are a cycle: a -> b -> a; remove one of them"},
		"a circle of three":         {[]*v1alpha1.Model{modelNamed("a", "b"), modelNamed("b", "c"), modelNamed("c", "a")}, "a -> b -> c -> a"},
		"a way into a circle":       {[]*v1alpha1.Model{modelNamed("a", "b"), modelNamed("b", "c"), modelNamed("c", "b")}, "a -> b -> c -> b"},
		"a dead end, then a circle": {[]*v1alpha1.Model{modelNamed("a", "d", "b"), modelNamed("d"), modelNamed("b", "a")}, "a -> b -> a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if p := snapshot.CheckModel(tc.models[0], gen.Objects(tc.models...).Models); p != nil {
				got = p.Reason + " " + p.Message
			}
			if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
				t.Errorf("CheckModel() = %q, want %q", got, tc.want)
			}
		})
	}
}

// All agents of a pod find their skills below /skills, so two with one name must be the same.
func TestAgentsOfAPodHaveSkillsOfOneSourceEach(t *testing.T) {
	skill := func(name, of string) v1alpha1.Skill {
		return v1alpha1.Skill{Name: name, ConfigMapRef: &v1alpha1.ConfigMapRef{Name: v1alpha1.ObjectName(of)}}
	}
	agent := func(name string, calls []string, skills ...v1alpha1.Skill) *v1alpha1.Agent {
		return gen.Agent(func(a *v1alpha1.Agent) {
			a.Name, a.Spec.Skills, a.Spec.Tools = name, skills, []v1alpha1.Tool{{Builtin: v1alpha1.BuiltinFiles}}
			for _, c := range calls {
				a.Spec.Tools = append(a.Spec.Tools, v1alpha1.Tool{Agent: v1alpha1.ObjectName(c)})
			}
		})
	}
	for name, tc := range map[string]struct {
		root, b, c []v1alpha1.Skill
		want       string
	}{
		"none":               {},
		"of one source":      {[]v1alpha1.Skill{skill("s", "x")}, []v1alpha1.Skill{skill("s", "x"), skill("t", "y")}, []v1alpha1.Skill{skill("t", "y")}, ""},
		"of the root":        {[]v1alpha1.Skill{skill("s", "x")}, []v1alpha1.Skill{skill("s", "y")}, nil, `Agent "b" would work in the pod of this one, and its skill s has another source than that of Agent "root"`},
		"of two that it has": {nil, []v1alpha1.Skill{skill("s", "x")}, []v1alpha1.Skill{skill("s", "y")}, `Agent "c" would work in the pod of this one, and its skill s has another source than that of Agent "b"`},
	} {
		t.Run(name, func(t *testing.T) {
			o := gen.Objects()
			o.Agents = map[string]*v1alpha1.Agent{"b": agent("b", nil, tc.b...), "c": agent("c", nil, tc.c...)}
			_, err := snapshot.Of(agent("root", []string{"b", "c"}, tc.root...), o)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, want %q", err, tc.want)
			}
		})
	}
}
