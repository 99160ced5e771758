package docs_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	demoBlock   = regexp.MustCompile("(?ms)^```\n(\\$ kubectl apply -f examples/demo/.*?)^```$")
	demoCommand = regexp.MustCompile(`(?m)^\$ (.*)$`)
	demoShows   = regexp.MustCompile(`(?m)^show \$?'(.*)'$`)
)

// The commands that README.md shows of the demo are those that the demo runs.
// What they print is compared on a cluster, by TestDemo of test/e2e.
func TestDemoRunsTheCommandsOfTheFirstPage(t *testing.T) {
	page := demoBlock.FindStringSubmatch(read(t, filepath.Join(root, "README.md")))
	if page == nil {
		t.Fatal("README.md does not show the demo")
	}
	var shown, run []string
	for _, m := range demoCommand.FindAllStringSubmatch(page[1], -1) {
		shown = append(shown, m[1])
	}
	unquoted := strings.NewReplacer(`\'`, `'`, `\\`, `\`)
	for _, m := range demoShows.FindAllStringSubmatch(read(t, filepath.Join(root, "hack", "demo.sh")), -1) {
		run = append(run, unquoted.Replace(m[1]))
	}
	if diff := cmp.Diff(shown, run); diff != "" {
		t.Errorf("README.md -, hack/demo.sh +:\n%s", diff)
	}
}
