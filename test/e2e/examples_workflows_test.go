//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

// answers says one thing for each text that a request may hold.
func answers(model string, by map[string]modeltest.Turn) map[string]modeltest.Dialogue {
	all := map[string]modeltest.Dialogue{model: turns(says("Nobody asked me that."))}
	for text, turn := range by {
		all[model+"?"+text] = turns(turn, says("Done."))
	}
	return all
}

// finishing ends with an answer of a schema.
func finishing(a args) modeltest.Turn { return does(call("Finish", a)) }

// workflowExamples are agents composed.
var workflowExamples = map[string]example{
	"workflow-pipeline.yaml": {
		models: answers("claude-sonnet-5", map[string]modeltest.Turn{
			"Find out what a sailor": finishing(args{"topics": []string{"tides", "${{ input.words }}"}, "depth": 4}),
			"Write about Port":       says("A guide to the tides."),
			"Write how to come in":   says("Come in at noon."),
			"Make this better":       says("{{.LastUserMessage}}"),
		}),
		check: func(s *exampleFixture) {
			s.has("the output", s.output("pipeline"), `"harbor":"Port Sunlight"`, `Make this better: A guide to the tides. Come in at noon.`, `"shallow":true`)
			s.graph("pipeline", "findings Succeeded", "draft Succeeded", "pilotage Succeeded", "final Succeeded")
			children := s.childrenByName("pipeline")
			if got := slices.Sorted(maps.Keys(children)); !slices.Equal(got, []string{"pipeline-draft", "pipeline-final", "pipeline-findings", "pipeline-pilotage"}) {
				s.t.Errorf("its Runs are %v", got)
			}
			for before, after := range map[string]string{"findings": "draft", "draft": "pilotage", "pilotage": "final"} {
				a, b := children["pipeline-"+before].Status, children["pipeline-"+after]
				if a.CompletionTime.After(b.CreationTimestamp.Time) {
					s.t.Errorf("%s began before %s had ended", after, before)
				}
			}
			s.has("the input", string(children["pipeline-draft"].Spec.Input.Raw), `"tides"`, `"words":200`, "${{ input.words }}")
			steps := s.runs["pipeline"].Status.Progress.Counts.Steps
			if steps < 4 {
				s.t.Errorf("%d steps in all", steps)
			}
		},
	},
	"workflow-review.yaml": {
		models: answers("claude-sonnet-5", map[string]modeltest.Turn{
			"for clarity":            costing(finishing(args{"marks": 8, "remark": "clear"}), 1000, 0, 100),
			"for accuracy":           costing(finishing(args{"marks": 6, "remark": "when is noon?"}), 1000, 0, 100),
			"for tone":               costing(does(call("Reject", args{"reason": "There is no tone."})), 1000, 0, 100),
			"Clarity: 8":             costing(finishing(args{"publish": true}), 1000, 0, 100),
			"Say whether it may be":  costing(finishing(args{"publish": true}), 1000, 0, 100),
			"no variant says this, ": says(""),
		}),
		check: func(s *exampleFixture) {
			s.has("the output", s.output("review"), `"publish":true`, `"worst":6`)
			s.graph("review", "clarity Succeeded", "accuracy Succeeded", "tone Failed Rejected", "verdict Succeeded", "minutes Succeeded")
			s.has("the message", succeeded(s.runs["review"]), "True Finished", "1 failed")
			children := s.childrenByName("review")
			s.has("the verdict's prompt", children["review-verdict"].Spec.Prompt, "Clarity: 8, clear", "Tone: nobody could say")
			s.has("the reviewer's prompt", requestTextWith(s, "for clarity"), "Or so they say ${{ literally }}.")
			usage := s.runs["review"].Status.Progress.Usage
			if usage.InputTokens != 5000 || usage.CostMicroUSD == nil || *usage.CostMicroUSD != 5*4500 {
				s.t.Errorf("all of it is %+v", usage)
			}
		},
	},
	"workflow-loop.yaml": {
		models: answers("claude-sonnet-5", map[string]modeltest.Turn{
			"Write about the harbor at night. ": says("Dark, dark."),
			"Less dark":                         says("Dim, dim."),
			"More light":                        says("Lanterns lean on water."),
			"Dark, dark.":                       finishing(args{"score": 3, "advice": "Less dark"}),
			"Dim, dim.":                         finishing(args{"score": 6, "advice": "More light"}),
			"Lanterns lean on water.":           finishing(args{"score": 9, "advice": "None"}),
		}),
		check: func(s *exampleFixture) {
			s.has("the output", s.output("poem"), `"poem":"Lanterns lean on water."`, `"score":9`)
			s.graph("poem", "polish Succeeded")
			if c := s.node("poem", "polish").Counts; c == nil || c.Started != 3 || c.Succeeded != 3 {
				s.t.Errorf("its iterations are %+v", c)
			}
			if n := len(s.childrenByName("poem-polish-3")); n != 2 {
				s.t.Errorf("the last iteration has %d Runs", n)
			}
		},
	},
	"workflow-each.yaml": {
		models: answers("claude-sonnet-5", map[string]modeltest.Turn{
			"File 1: /workspace/logs/monday.log":    finishing(args{"incidents": 0}),
			"File 2: /workspace/logs/tuesday.log":   finishing(args{"incidents": 1}),
			"File 3: /workspace/logs/wednesday.log": finishing(args{"incidents": 0}),
			"File 4: /workspace/logs/thursday.log":  does(call("Reject", args{"reason": "There is no such file."})),
		}),
		check: func(s *exampleFixture) {
			s.has("the output", s.output("audit"), `"incidents":1`, `"read":3`, `"unread":1`)
			if c := s.node("audit", "check").Counts; c == nil || c.Total != 4 || c.Started != 4 || c.Succeeded != 3 || c.Failed != 1 {
				s.t.Errorf("its items are %+v", c)
			}
		},
	},
	"workflow-approve.yaml": {
		models: answers("claude-sonnet-5", map[string]modeltest.Turn{
			"Plan how to move the buoys.": says("Tow them at slack water."),
			"In the north: Tow them":      says("Towed."),
			"Log that it ended.":          says("Logged."),
		}),
		person: func(s *exampleFixture) {
			run := s.awaits("change", "approval-consent")
			s.has("the message", succeeded(run), "AwaitingApproval", "May this be done? Tow them at slack water.", "change.approval-consent")
			if len(s.childrenByName("change")) != 1 {
				s.t.Error("something is done before anybody approved")
			}
			s.decides("decisions/workflow.yaml")
		},
		check: func(s *exampleFixture) {
			s.graph("change", "plan Succeeded", "consent Succeeded", "execute Succeeded", "log Succeeded")
			s.has("the output", s.output("change"), `"done":"Towed."`, `"by":"`+s.whoami()+`"`)
			s.decided("change", "change.approval-consent")
			s.has("what is logged", s.childrenByName("change")["change-log"].Spec.Prompt, "Consent: Succeeded, execution: Succeeded")
		},
	},
	"workflow-workspace.yaml": {
		models: answers("claude-sonnet-5", map[string]modeltest.Turn{
			"Build a hull":   does(call("Write", args{"path": "hull.txt", "content": "a bare hull"})),
			"Paint the hull": does(call("Edit", args{"path": "hull.txt", "old_string": "bare", "new_string": "blue"}), call("Read", args{"path": "hull.txt"})),
		}),
		check: func(s *exampleFixture) {
			s.graph("shipyard", "build Succeeded", "paint Succeeded")
			children := s.childrenByName("shipyard")
			build, paint := children["shipyard-build"].Status.Attempt, children["shipyard-paint"].Status.Attempt
			if build.VolumeClaim == "" || build.VolumeClaim != paint.VolumeClaim {
				s.t.Errorf("their claims are %q and %q", build.VolumeClaim, paint.VolumeClaim)
			}
			s.has("the edit", s.results("shipyard-paint", "Edit")[0].Text(), "hull.txt")
		},
	},
	"delegation.yaml": {
		models: map[string]modeltest.Dialogue{
			"claude-sonnet-5": turns(
				costing(does(call("researcher", args{"aspect": "depth"}), call("researcher", args{"aspect": "wind"}), call("researcher", args{"aspect": "ice"})), 1000, 0, 100),
				costing(says("It is: {{.LastToolResult}}"), 1000, 0, 100),
			),
			"claude-sonnet-5?about the depth": turns(costing(finishing(args{"finding": "deep"}), 1000, 0, 100)),
			"claude-sonnet-5?about the wind":  turns(costing(finishing(args{"finding": "sheltered"}), 1000, 0, 100)),
			"claude-sonnet-5?about the ice":   turns(costing(finishing(args{"finding": "free of ice", "sure": true}), 1000, 0, 100)),
		},
		check: func(s *exampleFixture) {
			s.has("the answer", s.says("research"), `"finding":"free of ice"`)
			var children v1alpha1.RunList
			s.list(&children, client.MatchingLabels{v1alpha1.LabelParentRun: "research"})
			if len(children.Items) != 3 {
				s.t.Fatalf("%d researchers", len(children.Items))
			}
			for i := range children.Items {
				if got := succeeded(&children.Items[i]); !strings.HasPrefix(got, "True Finished") {
					s.t.Errorf("Run %s: %s", children.Items[i].Name, got)
				}
			}
			p := s.runs["research"].Status.Progress
			if p.Usage.InputTokens != 5000 || *p.Usage.CostMicroUSD != 5*4500 || p.Counts.Steps != 2 || len(p.Pending) != 0 {
				s.t.Errorf("all of it is %+v, %+v", p.Usage, p)
			}
		},
	},
	"concurrency.yaml": {
		models: map[string]modeltest.Dialogue{"claude-sonnet-5": turns(modeltest.Turn{Text: "She is in.", DelayMS: 10_000})},
		person: func(s *exampleFixture) {
			waits := s.await(s.runs["queue-second"], "waits", func(r *v1alpha1.Run) bool {
				return strings.HasPrefix(succeeded(r), "Unknown Queued") || finished(r)
			})
			s.has("the second", succeeded(waits), "Unknown Queued", "Agent pilot")
		},
		check: func(s *exampleFixture) {
			first, second := s.ended("queue-first", "True Finished"), s.ended("queue-second", "True Finished")
			if second.Status.StartTime.Before(first.Status.CompletionTime) {
				s.t.Errorf("the second began at %s, the first ended at %s", second.Status.StartTime, first.Status.CompletionTime)
			}
		},
	},
}

// requestTextWith is the first request that holds a text.
func requestTextWith(s *exampleFixture, text string) string {
	for _, r := range s.requestsWith("POST models/") {
		if strings.Contains(r.Body, text) {
			return r.Body
		}
	}
	return ""
}

// output is what a Run that finished answers.
func (s *exampleFixture) output(run string) string {
	s.t.Helper()
	text := s.ended(run, "True Finished").Status.Progress.Result.Output
	if !json.Valid([]byte(text)) {
		s.t.Fatalf("the output of Run %s is %q", run, text)
	}
	return text
}

// node is one of a workflow Run.
func (s *exampleFixture) node(run, name string) v1alpha1.NodeStatus {
	s.t.Helper()
	for _, n := range s.runs[run].Status.Nodes {
		if n.Name == name {
			return n
		}
	}
	s.t.Fatalf("Run %s has no node %s", run, name)
	return v1alpha1.NodeStatus{}
}

// graph wants the nodes of a Run: name, state and reason of each.
func (s *exampleFixture) graph(run string, want ...string) {
	s.t.Helper()
	var got []string
	for _, n := range s.runs[run].Status.Nodes {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s", n.Name, n.State, n.Reason)))
	}
	if !slices.Equal(got, want) {
		s.t.Errorf("the nodes of Run %s are %q, want %q", run, got, want)
	}
}

// childrenByName are the child Runs of a workflow Run, by name.
func (s *exampleFixture) childrenByName(run string) map[string]*v1alpha1.Run {
	s.t.Helper()
	var list v1alpha1.RunList
	s.list(&list, client.MatchingLabels{v1alpha1.LabelWorkflowRun: run})
	all := map[string]*v1alpha1.Run{}
	for i := range list.Items {
		all[list.Items[i].Name] = &list.Items[i]
	}
	return all
}

func (s *exampleFixture) list(list client.ObjectList, by client.ListOption) {
	s.t.Helper()
	if err := cluster.admin.List(s.t.Context(), list, client.InNamespace(s.name), by); err != nil {
		s.t.Fatal(err)
	}
}
