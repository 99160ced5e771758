package docs_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

var (
	// demoLogs is what README.md shows of the log of the demo.
	demoLogs = regexp.MustCompile(`(?ms)^\$ kubectl deckhand logs demo --follow\n(.*?)\n\n\$ `)
	// callTook is behind the name of a call that took a while, and behind the end of a Run that did.
	callTook = regexp.MustCompile(`(?m)^(← [\w ]+) \([0-9.]+m?s\):|^(■ .*USD) · \d+s$`)
)

// make try prints of a Run what the demo prints of it on a cluster.
func TestTryShowsWhatTheDemoShows(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("make try works on Linux only")
	}
	page := demoLogs.FindStringSubmatch(read(t, filepath.Join(root, "README.md")))
	if page == nil {
		t.Fatal("README.md does not show the log of the demo")
	}
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	try := exec.CommandContext(t.Context(), filepath.Join(root, "hack", "try"), dir)
	var printed, errs bytes.Buffer
	try.Stdout, try.Stderr = &printed, &errs
	if err := try.Run(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, errs.String(), printed.String())
	}
	got := callTook.ReplaceAllStringFunc(printed.String(), func(line string) string {
		m := callTook.FindStringSubmatch(line)
		if m[1] != "" {
			return m[1] + ":"
		}
		return m[2]
	})
	for _, want := range []string{page[1], "haiku.txt\nHarbor lamps at night\n", "\nTo go on:\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not print %q:\n%s", want, got)
		}
	}
}
