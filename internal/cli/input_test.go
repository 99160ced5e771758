package cli

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// A silentInput is a pipe that stays open and has nothing; the user interrupts the command that reads it.
type silentInput struct{ interrupt func() }

func (i silentInput) Read([]byte) (int, error) {
	i.interrupt()
	select {}
}

func TestACommandThatReadsIsInterrupted(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo.yaml")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"lint", "-"},
		{"convert", "-f", "-"},
		{"run", "poet", "-"},
		{"run", "-f", "-"},
		{"run", "--local", "-f", "-", "poet"},
		{"message", "fix", "-"},
		{"answer", "fix", "s1c1", "-", "--yes"},
		{"lint", fifo},
		{"lint", filepath.Dir(fifo)},
		{"convert", fifo},
		{"run", "-f", fifo},
		{"run", "--local", "-f", fifo, "poet"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			s := newSession(t, gen.Run())
			if s.In = (silentInput{cancel}); !slices.Contains(args, "-") {
				cancel()
			}
			if code := s.runUntil(ctx, t, args...); code != exit.Interrupted {
				t.Errorf("exit code %d, want %d; %s", code, exit.Interrupted, s.text())
			}
		})
	}
}

func TestAUserAtATerminalReadsThatStandardInputIsRead(t *testing.T) {
	keyboard, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keyboard.Close(); terminal.Close() })
	s := newSession(t)
	s.In = terminal
	const endOfInput = "\x04"
	if _, err := keyboard.WriteString(goodManifest + endOfInput); err != nil {
		t.Fatal(err)
	}
	s.run(t, "lint", "-")
	if want := "Reading standard input: Ctrl-D ends it, Ctrl-C stops the command\nChecked 1 object"; !strings.HasPrefix(s.err.String(), want) {
		t.Errorf("stderr is %q, want %q", s.err.String(), want)
	}
}
