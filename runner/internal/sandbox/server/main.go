//go:build linux

package server

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/probe"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/supervise"
)

const usage = `usage:
  sandbox install DIR…   put this program into DIR/bin and make DIR/run, of each
  sandbox serve [flags]  run commands for clients of the socket
`

// Main is the program, whose arguments are without its own name.
func Main(args []string, stderr io.Writer) int {
	err := run(args, stderr)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, supervise.ErrKilled):
		return 1 // the server knows
	default:
		fmt.Fprintf(stderr, "sandbox: %v\n", err)
		return 1
	}
}

func run(args []string, stderr io.Writer) error {
	mode := ""
	if len(args) > 0 {
		mode, args = args[0], args[1:]
	}
	switch {
	case mode == "serve":
		o, err := parse(args, os.Environ(), stderr)
		if err != nil {
			return err
		}
		return serve(o, stderr)
	case mode == "install" && len(args) > 0:
		return installAll(args)
	case mode == "supervise" && len(args) == 0:
		return supervise.Main() //nolint:wrapcheck // it says all
	case mode == "probe" && len(args) == 0:
		return serveProbe(os.Stdin, os.Stdout)
	}
	fmt.Fprint(stderr, usage)
	return fmt.Errorf("%q is nothing that it does", mode)
}

// serveProbe is the confined process that tries what must not work.
func serveProbe(question io.Reader, answer io.Writer) error {
	var t probe.Targets
	if err := json.NewDecoder(question).Decode(&t); err != nil {
		return fmt.Errorf("reading what to try: %w", err)
	}
	if err := json.NewEncoder(answer).Encode(probe.Run(t)); err != nil {
		return fmt.Errorf("reporting the result: %w", err)
	}
	return nil
}
