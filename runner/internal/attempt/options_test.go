package attempt

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// What a runner was built with wrongly ends its Runs before anything begins.
func TestANameThatIsRegisteredTwiceEndsTheRun(t *testing.T) {
	p := newTestPod(t)
	add := withTool("crm", func(context.Context, registry.ToolSpec) ([]tool.Tool, error) { return nil, nil })
	if code := p.run(add, add); code != task.ExitBadTask {
		t.Errorf("exit code %d, want %d", code, task.ExitBadTask)
	}
	last := p.termination(t).Result
	if want := `runner.WithTool("crm") is used twice; rename one`; last.Reason != task.ReasonMisconfigured || !strings.Contains(last.Message, want) {
		t.Errorf("the termination message is %+v, want %s", last, want)
	}
	if len(p.model.Requests()) != 0 {
		t.Error("a model was asked")
	}
}

func TestAnAttemptClosesWhatFactoriesMade(t *testing.T) {
	p := newTestPod(t, modeltest.Turn{Text: "done"})
	p.snapshot.Agent.Tools = []task.Tool{{Custom: "crm"}}
	var closed []string
	crm := tool.Typed(tool.Spec{Name: "crm"}, func(context.Context, tool.Call, struct{}) (tool.Result, error) { return tool.Result{}, nil })
	code := p.run(
		withTool("crm", func(ctx context.Context, _ registry.ToolSpec) ([]tool.Tool, error) {
			crm.Closer = tool.CloseFunc(func() error {
				closed = append(closed, fmt.Sprintf("tool, context %v", ctx.Err()))
				return nil
			})
			return []tool.Tool{crm}, nil
		}),
		withLayer(func(context.Context, registry.LayerSpec) (middleware.Layer, error) {
			return middleware.Layer{Name: "calm", Close: func() error { closed = append(closed, "layer"); return nil }}, nil
		}),
	)
	if code != task.ExitCommitted || len(closed) != 2 || closed[0] != "tool, context <nil>" || closed[1] != "layer" {
		t.Errorf("exit code %d, closed %q", code, closed)
	}
}
