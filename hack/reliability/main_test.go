package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// root is that of the repository.
const root = "../.."

func rowsOf(t *testing.T) []resolved {
	t.Helper()
	tables, err := load()
	if err != nil {
		t.Fatal(err)
	}
	tests, err := scan(root)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := resolve(tables, tests)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// Every test that a row names exists, and the page shows the rows as they are.
func TestPageIsUpToDate(t *testing.T) {
	rows := rowsOf(t)
	old, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := render(string(old), rows, kept(string(old), rows))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(old), "\n"), strings.Split(fresh, "\n")); diff != "" {
		t.Errorf("the page is not up to date; make generate writes it (-page +rows):\n%s", diff)
	}
}

func TestNoRowNamesATestThatDoesNotExist(t *testing.T) {
	tests, err := scan(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"TestThatIsNot", "TestResolve/no such case", "internal/workflow/graph.TestResolve", "stories/never-told", "hack/nothing", "hack/reliability", "internal/controller/schedule.TestStories", "TestStories"} {
		if _, err := resolve([]table{{Rows: []row{{ID: "X1", Tests: []string{name}}}}}, tests); err == nil || !strings.Contains(err.Error(), "row X1") {
			t.Errorf("%s is found (%v)", name, err)
		}
	}
}

func TestResultOf(t *testing.T) {
	of := func(targets ...target) resolved { return resolved{targets: targets} }
	ran, err := record([]string{"testdata/test.json", "testdata/there-is-none.json"})
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		row  resolved
		want string
	}{
		"all passed":                {of(target{dir: "runner", test: "TestA"}, target{dir: "runner", test: "TestB/one_of_them"}), passed},
		"one failed":                {of(target{dir: "runner", test: "TestA"}, target{dir: "internal", test: "TestA"}), failed},
		"one did not run":           {of(target{dir: "runner", test: "TestA"}, target{dir: "test/e2e", test: "TestA"}), notRun},
		"one was skipped":           {of(target{dir: "runner", test: "TestA"}, target{dir: "runner", test: "TestSkipped"}), notRun},
		"a story":                   {of(target{dir: "internal", story: "crash"}), passed},
		"a story that was not told": {of(target{dir: "internal", story: "crash-again"}), notRun},
		"no test":                   {of(), noTest},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := resultOf(tc.row, ran); got != tc.want {
				t.Errorf("the result is %q, want %q", got, tc.want)
			}
		})
	}
}

// A test that -short left out under the race detector was played whole without it.
func TestATestThatRanTwice(t *testing.T) {
	events := func(action string) string {
		file := filepath.Join(t.TempDir(), "events.json")
		if err := os.WriteFile(file, []byte(`{"Action":"`+action+`","Package":"`+module+`a","Test":"TestA"}`), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for _, tc := range []struct{ first, second, want string }{
		{"pass", "skip", passed}, {"skip", "pass", passed}, {"fail", "pass", failed}, {"pass", "fail", failed}, {"skip", "skip", skipped},
	} {
		ran, err := record([]string{events(tc.first), events(tc.second)})
		if got := ran[key{"a", "TestA"}]; err != nil || got != tc.want {
			t.Errorf("%s, then %s: %q (%v), want %q", tc.first, tc.second, got, err, tc.want)
		}
	}
}

func TestCheckResults(t *testing.T) {
	rows := []resolved{
		{row: row{ID: "A", Fault: "passes"}, targets: []target{{dir: "internal/a", test: "TestA"}}},
		{row: row{ID: "B", Fault: "fails"}, targets: []target{{dir: "internal/a", test: "TestB"}}},
		{row: row{ID: "C", Fault: "is skipped"}, targets: []target{{dir: "internal/a", test: "TestC"}}},
		{row: row{ID: "D", Fault: "does not run"}, targets: []target{{dir: "internal/a", test: "TestD"}}},
		{row: row{ID: "E", Fault: "has no test"}},
	}
	file := filepath.Join(t.TempDir(), "test.json")
	events := ""
	for test, action := range map[string]string{"TestA": "pass", "TestB": "fail", "TestC": "skip"} {
		events += fmt.Sprintf("{\"Action\":%q,\"Package\":%q,\"Test\":%q}\n", action, module+"internal/a", test)
	}
	if err := os.WriteFile(file, []byte(events), 0o600); err != nil {
		t.Fatal(err)
	}
	err := checkResults(rows, []string{file})
	const want = "row B (**failed**): fails\nrow C (not run): is skipped\nrow D (not run): does not run"
	if err == nil || err.Error() != want {
		t.Errorf("checkResults() = %v, want %s", err, want)
	}
	if err := checkResults(rows[:1], []string{file}); err != nil {
		t.Errorf("checkResults() of what passed = %v", err)
	}
}

// Without a record a row keeps its result as long as its tests are the same.
func TestKept(t *testing.T) {
	rows := []resolved{
		{row: row{ID: "A1", Fault: "new words", Outcome: "o", Tests: []string{"TestA", "TestB"}}, table: "t", targets: []target{{}}},
		{row: row{ID: "A2", Fault: "f", Outcome: "o", Tests: []string{"TestNew"}}, table: "t", targets: []target{{}}},
		{row: row{ID: "A3", Fault: "f", Outcome: "o"}, table: "t"},
	}
	const shown = "| A1 | old words |  | o | `TestA`, `TestB` | ✓ |\n| A2 | f |  | o | `TestOld` | ✓ |\n| A3 | f |  | o |  | ✓ |\n"
	want := map[string]string{"A1": passed, "A2": notRun, "A3": noTest}
	if diff := cmp.Diff(want, kept(shown, rows)); diff != "" {
		t.Error(diff)
	}
}
