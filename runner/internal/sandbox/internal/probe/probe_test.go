//go:build linux

package probe

import (
	"net"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Where nobody listens somebody still says so: the connection was let through, and
// whatever listens tomorrow can be reached.
func TestAPortThatNobodyListensOnIsReached(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	got := dial(&all, []string{at}, 0)
	all.Wait()
	if diff := cmp.Diff([]Outcome{Succeeded}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
