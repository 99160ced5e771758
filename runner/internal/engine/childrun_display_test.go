package engine

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// More may be wanted than is shown, each as large as it may be: all are made, one
// after the other, and people are asked meanwhile.
func TestManyChildRunsWaitTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var written []string
		for i := range 10 {
			text := fmt.Sprintf(`{"n":%d,"prompt":"%s"}`, i, strings.Repeat("x", task.MaxDelegated-30))
			written = append(written, "child "+text)
		}
		written = append(written, `Bash {"n":1}`)
		n := newOperator()
		s := raising(n, calls(written...), says("ok"))
		s.Actor.Agent.ParallelTools, s.Actor.Policy, s.CanAsk = 20, asksBefore, true
		end := s.running(t.Context())
		for range 10 {
			time.Sleep(time.Second)
			p := s.reporter.last()
			if len(p.Pending) != 2 || p.Pending[0].Kind != task.PendingDelegation || p.State != approval.StateApproval {
				t.Fatalf("state %q, pending %v", p.State, p.Pending)
			}
			n.say(finished(p.Pending[0].ID, "well"))
		}
		time.Sleep(time.Second)
		n.fakeSignals.say(approve("d", requested("s2c11", "Bash", `{"n":1}`), ""))
		if out := end(); out.Reason != task.ReasonFinished || out.Progress.Usage.CacheWriteTokens != 10_000 {
			t.Errorf("ended %s having used %+v: %s", out.Reason, out.Progress.Usage, out.Message)
		}
		if got := len(s.doneWith("child")); got != 10 {
			t.Errorf("%d were made", got)
		}
	})
}
