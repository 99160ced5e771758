package main

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden page")

// root is that of the repository.
const root = "../.."

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The same measurements make the same page.
func TestThePageIsMadeOfWhatWasMeasured(t *testing.T) {
	got, r, err := render("", all(t))
	if err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/page.md"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(read(t, golden), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	want := []string{
		"operator RSS during a restart, maximum, pods kept: 270 MiB, bar ≤ 150 MiB",
		"1,000 steps of 20 KB in the journal: start → next model call: 330 ms, bar ≤ 300 ms",
	}
	if diff := cmp.Diff(want, r.missed); diff != "" {
		t.Errorf("bars that are not held -want +got:\n%s", diff)
	}
	if err := r.failure(); err != nil {
		t.Errorf("times and sizes depend on the machine: %v", err)
	}
}

// all is what was measured of each section.
func all(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{
		"parts": read(t, "testdata/bench.txt"), "cluster": read(t, "testdata/bench-cluster.txt"), "failover": read(t, "testdata/bench-failover.txt"), "scale": read(t, "testdata/bench-scale.txt"),
	}
}

func TestThePageKeepsWhatIsNotMeasured(t *testing.T) {
	first, _, err := render("", all(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range all(t) {
		_, where, _ := strings.Cut(text, "# ")
		day := where[:len("taken on 2030-01-02")]
		again, _, err := render(first, map[string]string{name: strings.ReplaceAll(text, day, "taken on 2040-05-06")})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.ReplaceAll(first, day, "taken on 2040-05-06"), again); diff != "" || again == first {
			t.Errorf("%s measured anew -want +got:\n%s", name, diff)
		}
		_, _, err = render("# A page\n", map[string]string{name: text})
		if err == nil || !strings.Contains(err.Error(), "make bench") {
			t.Errorf("a page without figures of all but %s: %v", name, err)
		}
	}
}

// A page that had no section gets it, and nothing twice.
func TestASectionIsAdded(t *testing.T) {
	whole, _, err := render("", all(t))
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(whole, "## At scale\n")
	_, after, _ := strings.Cut(rest, "## The runner as a program\n")
	got, _, err := render(before+"## The runner as a program\n"+after, map[string]string{"scale": all(t)["scale"]})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(whole, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWhatWasNotMeasuredIsNamed(t *testing.T) {
	measured := all(t)
	measured["parts"] = strings.ReplaceAll(measured["parts"], "BenchmarkStart", "BenchmarkBegin")
	_, _, err := render("", measured)
	if err == nil || !strings.Contains(err.Error(), "nothing was measured of BenchmarkStart in ./runner/internal/programtest") {
		t.Errorf("render() = %v", err)
	}
}

// A command on the page names a benchmark that is there.
func TestEveryCommandNamesABenchmark(t *testing.T) {
	for name, rows := range tables {
		for _, w := range rows {
			for _, of := range []metric{w.of, w.over} {
				if bench, _, _ := strings.Cut(of.bench, "/"); !slices.Contains(whole, name) && bench != "" && !has(t, of.pkg, "Benchmark"+bench) {
					t.Errorf("%s: there is no Benchmark%s in ./%s", w.what, bench, of.pkg)
				}
			}
		}
	}
	for _, name := range whole {
		for _, w := range tables[name] {
			if printed := "Benchmark" + w.of.bench; !strings.Contains(sources(t, w.of.pkg), printed+" ") {
				t.Errorf("%s: nothing in ./%s prints %s", w.what, w.of.pkg, printed)
			}
		}
	}
}

// has says whether the tests of a package have a function.
func has(t *testing.T, pkg, function string) bool {
	t.Helper()
	for _, path := range tests(t, pkg) {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, is := d.(*ast.FuncDecl); is && f.Recv == nil && f.Name.Name == function {
				return true
			}
		}
	}
	return false
}

func tests(t *testing.T, pkg string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func sources(t *testing.T, pkg string) string {
	t.Helper()
	var all strings.Builder
	for _, path := range tests(t, pkg) {
		all.WriteString(read(t, path))
	}
	return all.String()
}

// The page that is there has the rows of the tables: nobody wrote it by hand.
func TestThePageIsNotWrittenByHand(t *testing.T) {
	page := read(t, filepath.Join(root, "docs/performance.md"))
	for _, rows := range tables {
		for _, w := range rows {
			if !strings.Contains(page, "| "+w.what+" | ") {
				t.Errorf("docs/performance.md says nothing of %q: make performance", w.what)
			}
		}
	}
}

func TestFiguresHaveThreeDigits(t *testing.T) {
	cases := []struct {
		value float64
		unit  string
		want  string
	}{
		{14.3, "ns", "14.3 ns"},
		{1_250, "ns", "1.25 µs"},
		{329_700_000, "ns", "330 ms"},
		{2_000_000_000, "ns", "2 s"},
		{34_204, "B", "33.4 KiB"},
		{96, "B", "96 B"},
		{2_048, "KiB", "2 MiB"},
		{2_340, "ms", "2.34 s"},
		{0, "allocs", "0 allocs"},
		{96.05, "%", "96 %"},
		{0.284, times, "0.28×"},
		{12_345, "MB/s", "12345 MB/s"},
		{8, "", "8"},
	}
	for _, tc := range cases {
		if got := format(tc.value, tc.unit); got != tc.want {
			t.Errorf("told(%v, %q) = %q, want %q", tc.value, tc.unit, got, tc.want)
		}
	}
}

func TestAMedianIsOfAllRuns(t *testing.T) {
	m := parse("pkg: " + module + "a/b\nBenchmarkX/y-8 \t 10 \t 3.0 ns/op \t 7 B/op\nBenchmarkX/y-8 10 1 ns/op\nBenchmarkX/y-8 10 5 ns/op 9 B/op\nBenchmarkX says this\nok\n")
	for unit, want := range map[string]float64{"ns/op": 3, "B/op": 8} {
		if got, ok := m.median(metric{"a/b", "X/y", unit}); !ok || got != want {
			t.Errorf("the median in %s is %v, %t, want %v", unit, got, ok, want)
		}
	}
	if _, ok := m.median(metric{"a/b", "X", "ns/op"}); ok {
		t.Error("there is a median of what was not measured")
	}
}

// Ratios and counts hold on every machine, so a bar of them that is not held is a failure.
func TestABarOfARatioOrACountMustBeHeld(t *testing.T) {
	for name, tc := range map[string]struct {
		row   row
		value float64
		want  bool
	}{
		"a count":            {row{what: "writes", bar: atMost(5)}, 6, true},
		"a count that holds": {row{what: "writes", bar: atMost(5)}, 5, false},
		"a ratio":            {row{what: "over a pod", as: "ms", over: metric{unit: "ms"}, bar: atMost(0.35)}, 0.4, true},
		"a share":            {row{what: "cache reads", as: "%", bar: atLeast(90)}, 80, true},
		"a time":             {row{what: "start", as: "ms", bar: atMost(15)}, 20, false},
		"a size":             {row{what: "memory", as: "MiB", bar: atMost(12)}, 20, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := &renderer{}
			r.held(tc.row, tc.value, "x")
			if got := r.failure() != nil; got != tc.want {
				t.Errorf("it fails: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestCountsAreCheckedAtAnyLoad(t *testing.T) {
	if err := checkCounts("testdata/bench-scale.txt"); err != nil {
		t.Error(err)
	}
	more := strings.ReplaceAll(read(t, "testdata/bench-scale.txt"), "3.00 writes/Run", "30.0 writes/Run")
	file := filepath.Join(t.TempDir(), "scale.txt")
	if err := os.WriteFile(file, []byte(more), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := checkCounts(file); err == nil || !strings.Contains(err.Error(), "API writes of the operator per Run") {
		t.Errorf("with more writes: %v", err)
	}
}
