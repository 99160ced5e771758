package engine

import (
	"fmt"
	"testing"

	"github.com/deckhand-dev/deckhand/internal/shared/digest"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// variety asserts that what was played shows what it should.
func variety(t *testing.T, played []*chaos) {
	shown, ends := map[string]int{}, map[task.Reason]int{}
	for _, c := range played {
		ends[c.out.Reason]++
		for reason, n := range c.left {
			shown["left "+string(reason)] += n
		}
		for r := range c.log.Read() {
			for _, what := range shows(r) {
				shown[what]++
			}
		}
	}
	for _, what := range []string{
		"record hide", "record ask", "record decide", "record result", "record meter", "record child", "refused child", "ended child", "left Waiting", "left Paused", "depth 2",
		"decided Approve", "decided ApproveRun", "decided Deny", "decided Answer", "decided Grant", "decided Message", "made Guard",
		"made Path", "asked Path", "another form of Path",
	} {
		if shown[what] == 0 {
			t.Errorf("never: %s", what)
		}
	}
	if len(ends) < 4 {
		t.Errorf("the Runs end only so: %v", ends)
	}
	t.Logf("ends %v, shown %v", ends, shown)
}

// shows is what a record is an example of.
func shows(r journal.Record) []string {
	all := []string{"record " + string(r.Kind)}
	if r.Decision != nil && r.Decision.Refused == "" {
		all = append(all, "decided "+r.Decision.Type+r.Decision.Scope)
	}
	if r.Intent != nil && r.Intent.CallID != "" {
		all = append(all, "made "+r.Intent.Name)
	}
	if r.Request != nil && r.Request.Tool != "" {
		all = append(all, "asked "+r.Request.Tool)
	}
	if r.Intent != nil && r.Intent.Written != "" && r.Intent.Written != digest.Call(r.Intent.Name, r.Intent.Args) {
		all = append(all, "another form of "+r.Intent.Name)
	}
	if r.Step != nil {
		all = append(all, fmt.Sprint("depth ", r.Step.Scope.Depth))
	}
	if r.Child != nil {
		all = append(all, map[bool]string{true: "refused child", false: "ended child"}[r.Child.Run == ""])
	}
	return all
}
