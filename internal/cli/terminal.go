package cli

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"
)

// interactive is whether a user can be asked: In is a terminal.
func (f *Factory) interactive() bool {
	in, ok := f.In.(*os.File)
	return ok && term.IsTerminal(int(in.Fd()))
}

// confirm asks the user a question. Only y and yes mean yes.
func (f *Factory) confirm(ctx context.Context, question string) (bool, error) {
	fmt.Fprint(f.Err, question+" [y/N] ")
	answer := make(chan string, 1)
	go func() { // ends with the process if the context ends first
		line, _ := bufio.NewReader(f.In).ReadString('\n') // without an answer it is no
		answer <- line
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(f.Err)
		return false, ctx.Err()
	case line := <-answer:
		line = strings.ToLower(strings.TrimSpace(line))
		return line == "y" || line == "yes", nil
	}
}
