package runnerpod

import (
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// Names of Toolsets may have dots and be long; names of containers and volumes
// may not.
func TestNamesOfServers(t *testing.T) {
	long := strings.Repeat("a", 46) + ".b"
	for _, name := range []string{"issues", "wiki.internal", long} {
		s := server{toolset: name}
		for _, n := range []string{s.container(), s.tmp()} {
			if len(n) > 63 || strings.Contains(n, ".") {
				t.Errorf("%s: %s is no name of a container", name, n)
			}
		}
	}
	if (server{toolset: "a.b"}).container() == (server{toolset: "a-b"}).container() {
		t.Error("two Toolsets share a container")
	}
	if got := (server{toolset: "a.b"}).dir(); got != task.ServersDir+"/a.b" {
		t.Errorf("the runner looks for it in %s", got)
	}
}
