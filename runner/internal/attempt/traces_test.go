package attempt

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/testing/otlptest" //nolint:depguard // only the test has this collector
	"github.com/deckhand-dev/deckhand/runner/internal/telemetry"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

const traceUID = "0af76519-16cd-43dd-8448-eb211c80319c"

// tracedPod is a pod whose agent fixer has an agent reviewer, which writes a file with a secret.
func tracedPod(t *testing.T, endpoint string) *testPod {
	t.Helper()
	ask := modeltest.Turn{Calls: []modeltest.Call{{Name: "reviewer", Args: json.RawMessage(`{"prompt":"look"}`)}}}
	p := newTestPod(t, ask, modeltest.Turn{Text: "done"})
	p.model = modeltest.NewServer(modeltest.Script{Key: secret, Models: map[string]modeltest.Dialogue{
		modeltest.ModelName: {Turns: []modeltest.Turn{ask, {Text: "done"}}},
		"small":             {Turns: []modeltest.Turn{writeTurn("note", "the key is "+secret), {Text: "reviewed " + secret}}},
	}})
	server := httptest.NewServer(p.model)
	t.Cleanup(server.Close)
	p.snapshot.Models[0].Endpoint = server.URL + "/v1"
	small := p.snapshot.Models[0]
	small.Name, small.Model = "s", "small"
	p.snapshot.Models = append(p.snapshot.Models, small)
	p.snapshot.Agents = []task.Agent{{Name: "reviewer", Models: []string{"s"}, ParallelTools: 1, Events: "Full", Tools: []task.Tool{{Builtin: "Files"}}, Limits: task.Limits{Steps: 5}}}
	p.snapshot.Agent.Tools = append(p.snapshot.Agent.Tools, task.Tool{Agent: "reviewer"})
	p.task.Limits.Depth = 1
	p.task.Run.UID = traceUID
	p.task.Traces = &task.Traces{Endpoint: endpoint}
	return p
}

func TestSpansOfAnAgentWithASubagentAreATree(t *testing.T) {
	collector := otlptest.Start(t)
	p := tracedPod(t, collector.URL)
	if code := p.run(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	want := `trace 0af7651916cd43dd8448eb211c80319c
  (not sent)
    chat scripted gen_ai.agent.name=fixer deckhand.attempt=1
    execute_tool reviewer gen_ai.agent.name=fixer deckhand.attempt=1
      invoke_agent reviewer gen_ai.agent.name=reviewer deckhand.attempt=1
        chat small gen_ai.agent.name=reviewer deckhand.attempt=1
        execute_tool Write gen_ai.agent.name=reviewer deckhand.attempt=1
        chat small gen_ai.agent.name=reviewer deckhand.attempt=1
    chat scripted gen_ai.agent.name=fixer deckhand.attempt=1
`
	if diff := cmp.Diff(want, collector.Tree("gen_ai.agent.name", "deckhand.attempt")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if lines := collector.Histograms(); len(lines) > 0 {
		t.Errorf("histograms were sent: %q", lines)
	}
	for _, content := range []string{secret, "the key is", "reviewed", "gen_ai.tool.call.arguments"} {
		if strings.Contains(collector.Sent(), content) {
			t.Errorf("without content, spans have %q", content)
		}
	}
}

// Histograms have the model calls of all agents, if the operator of the cluster wants them.
func TestHistogramsOfModelCalls(t *testing.T) {
	collector := otlptest.Start(t)
	p := tracedPod(t, collector.URL)
	p.task.Traces.Metrics = true
	if code := p.run(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	var got []string
	for _, line := range collector.Histograms() {
		series, _, _ := strings.Cut(line, " of ")
		got = append(got, series)
	}
	chat := " gen_ai.operation.name=chat gen_ai.provider.name=openaicompatible gen_ai.request.model="
	want := []string{
		"gen_ai.client.operation.duration" + chat + "scripted gen_ai.agent.name=fixer: 2",
		"gen_ai.client.operation.duration" + chat + "small gen_ai.agent.name=reviewer: 2",
		"gen_ai.client.token.usage" + chat + "scripted gen_ai.agent.name=fixer gen_ai.token.type=input: 2",
		"gen_ai.client.token.usage" + chat + "scripted gen_ai.agent.name=fixer gen_ai.token.type=output: 2",
		"gen_ai.client.token.usage" + chat + "small gen_ai.agent.name=reviewer gen_ai.token.type=input: 2",
		"gen_ai.client.token.usage" + chat + "small gen_ai.agent.name=reviewer gen_ai.token.type=output: 2",
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Spans of a server that a tool call reaches are below the span of the call.
func TestTraceContextNamesTheSpanOfTheCall(t *testing.T) {
	collector := otlptest.Start(t)
	p := tracedPod(t, collector.URL)
	p.task.Traces.Root = "11111111-2222-3333-4444-555555555555"
	if code := p.run(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	traceparent := telemetry.Traceparent(p.task)
	calls := 0
	for _, s := range collector.Spans() {
		for _, a := range s.GetAttributes() {
			if a.GetKey() != "gen_ai.tool.call.id" {
				continue
			}
			calls++
			want := fmt.Sprintf("00-11111111222233334444555555555555-%x-01", s.GetSpanId())
			if got := traceparent(a.GetValue().GetStringValue()); got != want {
				t.Errorf("traceparent of %s: %s, want %s", s.GetName(), got, want)
			}
		}
	}
	if calls != 2 {
		t.Errorf("%d tool calls have a span", calls)
	}
	if p.task.Traces = nil; telemetry.Traceparent(p.task) != nil {
		t.Error("without traces there is a trace context")
	}
}

func TestContentOfSpansHasNoSecrets(t *testing.T) {
	collector := otlptest.Start(t)
	p := tracedPod(t, collector.URL)
	p.task.Traces.Content = true
	if code := p.run(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	for _, content := range []string{"the key is", "reviewed", "gen_ai.tool.call.arguments", "gen_ai.output.messages"} {
		if !strings.Contains(collector.Sent(), content) {
			t.Errorf("with content, spans have no %q", content)
		}
	}
	if strings.Contains(collector.Sent(), secret) {
		t.Error("spans have a secret")
	}
}

func TestASecondAttemptJoinsTheTraceOfTheParent(t *testing.T) {
	collector := otlptest.Start(t)
	p := newTestPod(t)
	p.task.Traces = &task.Traces{Endpoint: collector.URL, Root: traceUID}
	p.run(p.withDriver(func(turn int, _ func() (string, error)) []model.Delta {
		if turn > 1 {
			panic("boom")
		}
		return []model.Delta{{Call: &model.CallDelta{Name: "Ls", Args: `{}`}}, {Finish: step.FinishCalls}}
	}))
	p.task.Attempt = 2
	p.run(p.withDriver(func(int, func() (string, error)) []model.Delta {
		return []model.Delta{{Text: "done"}, {Finish: step.FinishStop}}
	}))
	want := `trace 0af7651916cd43dd8448eb211c80319c
  (not sent)
    chat scripted deckhand.attempt=1
    execute_tool Ls deckhand.attempt=1
    chat scripted deckhand.attempt=2
`
	if diff := cmp.Diff(want, collector.Tree("deckhand.attempt")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestACollectorThatHangsDoesNotFailARun(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then the server sees that the client is gone
		<-r.Context().Done()
	}))
	defer server.Close()
	p := tracedPod(t, server.URL)
	if code := p.run(); code != 0 || !p.api.committed() {
		t.Errorf("exit code %d", code)
	}
}
