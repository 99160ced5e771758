// Command soak writes docs/soak.md from what make soak counted.
//
//	soak DIRECTORY PAGE
//
// The directory has a tally of each layer, and a file where that says when and where the soak
// ran. It exits with 1 if an invariant was violated, and writes the page all the same.
package main

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/deckhand-dev/deckhand/test/soak"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: soak DIRECTORY PAGE")
		os.Exit(2)
	}
	violations, err := write(os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
	}
	if err != nil || violations > 0 {
		os.Exit(1)
	}
}

// write writes the page, and returns how many violations it shows.
func write(dir, page string) (violations int, err error) {
	where, err := os.ReadFile(filepath.Join(dir, "where"))
	if err != nil {
		return 0, fmt.Errorf("reading where the soak ran: %w", err)
	}
	tallies, err := read(dir)
	if err != nil {
		return 0, err
	}
	text, err := render(strings.TrimSpace(string(where)), tallies)
	if err != nil {
		return 0, err
	}
	for _, t := range tallies {
		violations += len(t.Violations)
	}
	return violations, os.WriteFile(page, []byte(text), 0o600)
}

// layers are the layers in the order of the page, with what each of them runs.
var layers = []struct{ name, what string }{
	{"runner", "the runner as a process, with its journal on a disk"},
	{"operator", "two operators that both lead, on a real API server, with simulated pods"},
	{"cluster", "everything, on a real cluster"},
}

// read reads the tallies of the layers that ran.
func read(dir string) ([]soak.Tally, error) {
	var tallies []soak.Tally
	for _, l := range layers {
		data, err := os.ReadFile(filepath.Join(dir, l.name+".json"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var t soak.Tally
		if err = cmp.Or(err, json.Unmarshal(data, &t)); err != nil {
			return nil, fmt.Errorf("reading the tally of the %s: %w", l.name, err)
		}
		tallies = append(tallies, t)
	}
	if len(tallies) == 0 {
		return nil, errors.New("no layer ran")
	}
	return tallies, nil
}

//go:embed page.md.tmpl
var layout string

// A page is the data of the template.
type page struct {
	Where  string
	Seed   uint64
	Layers []layerRow
	Total  layerRow
	Kills  []countRow
	Held   []invariantRow
	Ends   []countRow
}

// A layerRow is a layer with its result.
type layerRow struct {
	Name, What  string
	Runs, Kills int
	Result      string
}

// A countRow is a count in each layer.
type countRow struct {
	Layer, What string
	Count       int
}

// An invariantRow is an invariant with its result.
type invariantRow struct {
	ID     soak.Invariant
	Text   string
	Result string
}

// render returns the page.
func render(where string, tallies []soak.Tally) (string, error) {
	p := page{Where: where, Seed: tallies[0].Seed, Total: layerRow{Name: "all"}}
	violated := map[soak.Invariant]int{}
	runs := map[string]bool{} // with a violation
	for _, t := range tallies {
		affected := map[int]bool{}
		for _, v := range t.Violations {
			violated[v.Invariant]++
			affected[v.Run], runs[fmt.Sprint(t.Layer, v.Run)] = true, true
		}
		p.Layers = append(p.Layers, layerRow{Name: t.Layer, What: whatOf(t.Layer), Runs: t.Runs, Kills: t.Total(), Result: rate(len(affected), t.Total())})
		p.Total.Runs += t.Runs
		p.Total.Kills += t.Total()
		p.Kills = append(p.Kills, rows(t.Layer, t.Kills)...)
		p.Ends = append(p.Ends, rows(t.Layer, t.Effects)...)
	}
	p.Total.Result = rate(len(runs), p.Total.Kills)
	for _, i := range soak.Invariants {
		p.Held = append(p.Held, invariantRow{i.ID, i.Text, rate(violated[i.ID], p.Total.Kills)})
	}
	parsed, err := template.New("page").Parse(layout)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = parsed.Execute(&b, p)
	return b.String(), err
}

func whatOf(layer string) string {
	for _, l := range layers {
		if l.name == layer {
			return l.what
		}
	}
	return ""
}

func rows(layer string, counts map[string]int) []countRow {
	var list []countRow
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, countRow{layer, what, counts[what]})
	}
	return list
}

// rate returns the share of kills that led to a violation. Without one, the true rate is below 3/N with a confidence of
// 95 %.
func rate(violations, kills int) string {
	if violations > 0 || kills == 0 {
		return fmt.Sprintf("**%d of %d**", violations, kills)
	}
	return fmt.Sprintf("0 of %d, 95 %%: < 3/%d (%.2g %%)", kills, kills, 300/float64(kills))
}
