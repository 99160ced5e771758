//go:build linux

package sandbox_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
)

// An outcome is what came of a command.
type outcome struct {
	stdout, stderr, control string
	exit                    sandbox.Exit
}

// run runs a command to its end.
func run(t *testing.T, s sandbox.Sandbox, c sandbox.Command) outcome {
	t.Helper()
	return collect(t, begin(t, s, c))
}

// begin starts a command.
func begin(t *testing.T, s sandbox.Sandbox, c sandbox.Command) sandbox.Process {
	t.Helper()
	p, err := s.Start(t.Context(), c)
	if err != nil {
		t.Fatalf("starting %q: %v", c.Args, err)
	}
	return p
}

// sh is a command for the shell.
func sh(script string) sandbox.Command {
	return sandbox.Command{ID: "call-1", Args: []string{"sh", "-c", script}}
}

// released runs a script in the shell that begins when its start is known: what
// it does then, for example to its supervisor, cannot prevent the answer.
func released(t *testing.T, s sandbox.Sandbox, script string) outcome {
	t.Helper()
	p := begin(t, s, sh("read go; "+script))
	io.WriteString(p.Stdin(), "\n")
	return collect(t, p)
}

// limited is a command for the shell with limits.
func limited(script string, l sandbox.Limits) sandbox.Command {
	c := sh(script)
	c.Limits = l
	return c
}

// collect takes what a process says, until its end.
func collect(t *testing.T, p sandbox.Process) outcome {
	t.Helper()
	var o outcome
	for chunk := range p.Output() {
		switch chunk.Stream {
		case sandbox.Stdout:
			o.stdout += string(chunk.Data)
		case sandbox.Stderr:
			o.stderr += string(chunk.Data)
		case sandbox.Control:
			o.control += string(chunk.Data)
		}
	}
	o.exit = ended(t, p)
	return o
}

// ended waits for the end of a process.
func ended(t *testing.T, p sandbox.Process) sandbox.Exit {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	exit, err := p.Wait(ctx)
	if err != nil {
		t.Fatalf("Wait: %v", err)
	}
	exit.Detail = ""
	return exit
}

// says waits until a process has printed something.
func says(t *testing.T, p sandbox.Process, want string) {
	t.Helper()
	said := ""
	for len(said) < len(want) {
		chunk, ok := <-p.Output()
		if !ok {
			t.Fatalf("it ended after %q", said)
		}
		said += string(chunk.Data)
	}
	if said[:len(want)] != want {
		t.Fatalf("it said %q, not %q", said, want)
	}
}
