package state

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// Hooks of different agents may have the same name. The order is always the same.
func TestRemotesAreSorted(t *testing.T) {
	var b Run
	var want []string
	for i := range 9 {
		agent := fmt.Sprintf("agent-%d", 8-i)
		b.countRemotes(journal.Record{Step: &step.Step{Scope: step.Scope{Agent: agent}, Hooks: []step.Hook{{Name: "audit"}}}})
		want = append(want, "hook audit: its url in spec.hooks of Agent "+agent)
	}
	b.countRemotes(journal.Record{Remote: &journal.Remote{Name: "a toolset", Field: "spec.requests.baseURL"}})
	want = append(want, "a toolset: spec.requests.baseURL")
	slices.Sort(want)
	var got []string
	for _, r := range b.Remotes() {
		got = append(got, r.Name+": "+r.Field)
	}
	if diff := cmp.Diff(strings.Join(want, "\n"), strings.Join(got, "\n")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
