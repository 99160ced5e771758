package shell_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// driver runs each of its arguments as the Shell tool runs a command line (see
// the script in runner/internal/tool/shell), each in a subshell, and records the words of
// every command that bash would execute. Builtins that the shell can do without
// are disabled, so that they are recorded too; those that can run a command or
// evaluate a subscript stay enabled. No program is ever found, because
// PATH names an empty directory. Commands whose names begin with a to m succeed,
// others fail. A newline is recorded as U+E000: bash flushes its output at newlines,
// and each record must be one write, because several processes write at once.
const driver = `
ulimit -c 0 -f 64 -t 5
keep=' : . alias break builtin command continue declare enable eval exit export let local printf readonly return set shift shopt source trap typeset unalias unset wait [ bind compgen complete compopt fc getopts hash history jobs mapfile read readarray test '
for name in $(compgen -b); do case $keep in *" $name "*) ;; *) enable -n "$name" ;; esac; done
command_not_found_handle() { set -- "${@//$'\n'/$'\ue000'}"; builtin printf '%s\0' "$DIFF_CASE" "$#" "$@" >&9; case $1 in [a-m]*) return 0 ;; *) return 1 ;; esac; }
FUNCNEST=4
DIFF_CASE=0
for line; do
	( set -- "$line"; unset line name keep; trap ':' EXIT; eval "shift; $1" 3>&-; wait ) 2>/dev/null </dev/null >/dev/null
	DIFF_CASE=$((DIFF_CASE + 1))
done
`

// executed are the words of the commands that bash executed, by line.
type executed [][][]string

// A realBash runs command lines in the real bash, where they can do no harm.
type realBash struct {
	path, empty, work string
}

// newRealBash finds bash. Every Debian has it; without it the test proves nothing,
// so it fails.
func newRealBash(tb testing.TB) *realBash {
	tb.Helper()
	path, err := exec.LookPath("bash")
	if err != nil {
		tb.Fatalf("This test compares the policy with the real bash, which is not installed: %v. Install bash.", err)
	}
	b := &realBash{path: path, empty: filepath.Join(tb.TempDir(), "empty"), work: filepath.Join(tb.TempDir(), "work")}
	for _, dir := range []string{b.empty, b.work} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			tb.Fatal(err)
		}
	}
	return b
}

// run runs lines in one process, and those of a process that hangs one by one.
// What a line recorded before it was killed counts.
func (b *realBash) run(tb testing.TB, lines ...string) executed {
	tb.Helper()
	recorded, err := b.batch(tb, lines, 10*time.Second)
	if err == nil {
		return recorded
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		tb.Fatalf("running bash: %v", err)
	}
	recorded = make(executed, len(lines))
	for i, line := range lines {
		one, err := b.batch(tb, []string{line}, time.Second)
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			tb.Fatalf("running bash: %v", err)
		}
		recorded[i] = one[0]
	}
	return recorded
}

// batch runs lines in one process group, which it kills at the end.
func (b *realBash) batch(tb testing.TB, lines []string, limit time.Duration) (executed, error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), limit)
	defer cancel()
	ours, theirs, err := os.Pipe()
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = ours.Close() }()
	cmd := exec.CommandContext(ctx, b.path, append([]string{"-c", driver, "bash"}, lines...)...)
	cmd.Dir = b.work
	cmd.Env = []string{"PATH=" + b.empty, "HOME=" + b.work, "PWD=" + b.work, "TERM=dumb", "LC_ALL=C.UTF-8"}
	cmd.ExtraFiles = []*os.File{nil, nil, nil, nil, nil, nil, theirs} // descriptor 9
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	kill := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = kill
	if err := cmd.Start(); err != nil {
		_ = theirs.Close()
		tb.Fatal(err)
	}
	_ = theirs.Close()
	stop := context.AfterFunc(ctx, func() { _ = kill() }) // also those that outlive bash
	defer stop()
	data, readErr := io.ReadAll(ours)
	waitErr := cmd.Wait()
	_ = kill()
	recorded, parseErr := parseRecords(data, len(lines))
	if ctx.Err() != nil {
		return recorded, ctx.Err()
	}
	if _, exited := errors.AsType[*exec.ExitError](waitErr); exited {
		waitErr = nil // how the last line ended
	}
	return recorded, errors.Join(readErr, waitErr, parseErr)
}

// parseRecords reads what command_not_found_handle wrote: the number of the line,
// the number of words, and the words, each ended by NUL.
func parseRecords(data []byte, lines int) (executed, error) {
	recorded := make(executed, lines)
	fields := strings.Split(string(bytes.TrimSuffix(data, []byte{0})), "\x00")
	for len(fields) > 1 {
		line, err := strconv.Atoi(fields[0])
		count, err2 := strconv.Atoi(fields[1])
		if err != nil || err2 != nil || line < 0 || line >= lines || count > len(fields)-2 {
			return recorded, fmt.Errorf("a record that cannot be read: %.200q", fields)
		}
		recorded[line] = append(recorded[line], unescapeNewlines(fields[2:2+count]))
		fields = fields[2+count:]
	}
	return recorded, nil
}

func unescapeNewlines(words []string) []string {
	for i, w := range words {
		words[i] = strings.ReplaceAll(w, "\ue000", "\n")
	}
	return words
}
