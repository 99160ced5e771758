package cli

import (
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/internal/cli/exit"
)

func TestHelpGroupsCommands(t *testing.T) {
	s := newSession(t)
	if code := s.run(t, "--help"); code != exit.OK {
		t.Fatal(s.text())
	}
	golden(t, "help.txt", s.text())
	if code := s.run(t, "why", "--help"); code != exit.OK {
		t.Fatal(s.text())
	}
	golden(t, "help-why.txt", s.text())
}

func TestEachCommandHasAGroup(t *testing.T) {
	root := newRoot(newSession(t).Factory, "v1.2.3")
	others := "version options completion"
	for _, c := range root.Commands() {
		if c.GroupID == "" && !strings.Contains(others, c.Name()) {
			t.Errorf("%s has no group", c.Name())
		}
	}
}

func TestOptionsPrintsTheFlagsOfAllCommands(t *testing.T) {
	s := newSession(t)
	if code := s.run(t, "options"); code != exit.OK {
		t.Fatal(s.text())
	}
	for _, flag := range []string{"--context", "--namespace", "--as ", "--kubeconfig"} {
		if !strings.Contains(s.out.String(), flag) {
			t.Errorf("%s is missing: %s", flag, s.out.String())
		}
		s := newSession(t)
		if s.run(t, "why", "--help"); strings.Contains(s.out.String(), flag) {
			t.Errorf("the help of why has %s: %s", flag, s.out.String())
		}
	}
}
