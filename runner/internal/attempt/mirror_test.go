package attempt

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/session"
	"github.com/deckhand-dev/deckhand/runner/session/memory"
	"github.com/deckhand-dev/deckhand/runner/step"
)

func TestASessionIsCopiedToTheStore(t *testing.T) {
	store := memory.New(memory.Options{})
	p := newTestPod(t, writeTurn("a", "x"), modeltest.Turn{Text: "done"})
	p.run(withStore(func(context.Context, registry.StoreSpec) (session.Store, error) { return store, nil }))
	var said []string
	for s, err := range store.Read(t.Context(), "uid-1", 1) {
		if err != nil {
			t.Fatal(err)
		}
		said = append(said, string(s.Role))
	}
	if got := strings.Join(said, " "); got != "user assistant tool assistant" {
		t.Errorf("the store has %s", got)
	}
	page, err := store.List(t.Context(), session.Query{App: "team-a", Agent: "fixer"})
	if err != nil || len(page.Rows) != 1 || page.Rows[0].Status != "Finished" {
		t.Errorf("its rows are %+v, %v", page.Rows, err)
	}
}

// A closedStore store takes nothing.
type closedStore struct{ session.Store }

func (closedStore) Append(context.Context, session.Row, int64, ...step.Step) error {
	return errors.New("it is down")
}

func TestAStoreThatIsDownCostsNothingButTheCopy(t *testing.T) {
	dir, err := journal.Open(journal.Options{Dir: t.TempDir(), RunUID: "u", Attempt: 1, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		c := newMirroredJournal(dir, closedStore{memory.New(memory.Options{})}, session.Row{ID: "u"})
		if err := c.Append(journal.Record{Kind: journal.KindStep, Step: &step.Step{Seq: 1, Role: step.RoleUser}}); err != nil {
			t.Error(err)
		}
		c.close(copyFor, slog.New(slog.NewTextHandler(&log, nil)))
		if !strings.Contains(log.String(), "did not take everything") || !strings.Contains(log.String(), "it is down") {
			t.Errorf("the log says %q", log.String())
		}
	})
}
