package main

import (
	"fmt"
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
