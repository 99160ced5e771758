package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// Markers around a table on the page; what is between them is written here.
const (
	begin = "<!-- rows of %s: make generate writes them from hack/reliability/rows.yaml -->\n"
	end   = "<!-- end of rows -->\n"
)

// render returns the page with its tables written anew.
func render(old string, rows []resolved, results map[string]string) (string, error) {
	for _, name := range tablesOf(rows) {
		before, rest, found := strings.Cut(old, fmt.Sprintf(begin, name))
		_, after, closed := strings.Cut(rest, end)
		if !found || !closed {
			return "", fmt.Errorf("the page has no place for table %s", name)
		}
		old = before + fmt.Sprintf(begin, name) + lines(name, rows, results) + end + after
	}
	return old, nil
}

func tablesOf(rows []resolved) []string {
	var out []string
	for _, r := range rows {
		if !slices.Contains(out, r.table) {
			out = append(out, r.table)
		}
	}
	return out
}

func lines(table string, rows []resolved, results map[string]string) string {
	var b strings.Builder
	b.WriteString("| id | fault | injected by | expected | tests | result |\n|---|---|---|---|---|---|\n")
	for _, r := range rows {
		if r.table == table {
			fmt.Fprintf(&b, "%s %s |\n", r.cells(), results[r.ID])
		}
	}
	return b.String()
}

// cells returns a row without its result.
func (r row) cells() string {
	return fmt.Sprintf("| %s | %s | %s | %s | %s |", r.ID, r.Fault, r.Injection, r.Outcome, r.names())
}

// names returns the names of a row's tests as the page shows them.
func (r row) names() string {
	var out []string
	for _, t := range r.Tests {
		out = append(out, "`"+t+"`")
	}
	return strings.Join(out, ", ")
}

// kept returns the results that a page shows, of rows whose tests are the same.
func kept(page string, rows []resolved) map[string]string {
	shown := map[[2]string]string{}
	for line := range strings.Lines(page) {
		if cells := strings.Split(strings.Trim(line, "| \n"), " | "); len(cells) == 6 {
			shown[[2]string{cells[0], cells[4]}] = cells[5]
		}
	}
	out := map[string]string{}
	for _, r := range rows {
		out[r.ID] = resultOf(r, nil)
		if result := shown[[2]string{r.ID, r.names()}]; len(r.Tests) > 0 && slices.Contains([]string{passed, failed, notRun}, result) {
			out[r.ID] = result
		}
	}
	return out
}

// module is the prefix of the paths of packages.
const module = "github.com/deckhand-dev/deckhand/"

// The possible results of a row.
const (
	passed  = "✓"
	failed  = "**failed**"
	notRun  = "not run"
	noTest  = "no test yet"
	skipped = "skipped"
)

// A key names a test of a package; without a test, the package.
type key struct{ dir, test string }

// record reads test events: how each test and each package ended. A file that
// is not there holds none.
func record(files []string) (map[key]string, error) {
	out := map[key]string{}
	for _, name := range files {
		if err := read(name, out); err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
	}
	return out, nil
}

func read(name string, into map[key]string) error {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var event struct{ Action, Package, Test string }
		if json.Unmarshal(lines.Bytes(), &event) != nil {
			continue // output of a build
		}
		if result := map[string]string{"pass": passed, "fail": failed, "skip": skipped}[event.Action]; result != "" {
			k := key{strings.TrimPrefix(event.Package, module), event.Test}
			into[k] = merged(into[k], result)
		}
	}
	return lines.Err()
}

// merged returns the joint result of two runs of a test: failed if one failed, else passed if one passed.
func merged(a, b string) string {
	for _, result := range []string{failed, passed} {
		if a == result || b == result {
			return result
		}
	}
	return b
}

// resultsOf returns the results of the rows, by id.
func resultsOf(rows []resolved, ran map[key]string) map[string]string {
	out := map[string]string{}
	for _, r := range rows {
		out[r.ID] = resultOf(r, ran)
	}
	return out
}

// resultOf returns a row's result: it passed when each of its tests ran and passed.
func resultOf(r resolved, ran map[key]string) string {
	if len(r.targets) == 0 {
		return noTest
	}
	result := passed
	for _, t := range r.targets {
		switch t.result(ran) {
		case failed:
			return failed
		case passed:
		default:
			result = notRun
		}
	}
	return result
}

func (t target) result(ran map[key]string) string {
	if t.story == "" {
		return ran[key{t.dir, t.test}]
	}
	for k, result := range ran {
		if test, story, _ := strings.Cut(k.test, "/"); k.dir == t.dir && story == t.story && strings.HasPrefix(test, "TestStories") {
			return result
		}
	}
	return ""
}
