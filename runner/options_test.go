package runner

import (
	"context"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// What a runner was built with wrongly ends its Runs before anything begins.
func TestANameThatIsRegisteredTwiceEndsTheRun(t *testing.T) {
	p := newPod(t)
	add := WithTool("crm", func(context.Context, registry.ToolSpec) ([]tool.Tool, error) { return nil, nil })
	if code := p.run(Option{}, add, add); code != task.ExitBadTask {
		t.Errorf("exit code %d, want %d", code, task.ExitBadTask)
	}
	last := p.lastWord(t).Result
	if want := `runner.WithTool("crm") is used twice; rename one`; last.Reason != task.ReasonMisconfigured || !strings.Contains(last.Message, want) {
		t.Errorf("the termination message is %+v, want %s", last, want)
	}
	if len(p.model.Requests()) != 0 {
		t.Error("a model was asked")
	}
}
