// Command mutants changes one thing at a time in packages that decide, and looks whether their tests
// notice it. It writes the faults that no test noticed to dist/mutants.txt. It fails if the tests of a
// package notice less than 90 % of its faults, not counting equivalent ones.
//
//	mutants [-seed TEXT] [-n NUMBER] [-changed COMMIT] [PACKAGE...]
//
// Each package gets NUMBER faults, chosen by the seed, which is the commit by default, and printed.
// With -changed only packages that differ from COMMIT are looked at. A fault is compiled with the
// overlay of the go command, so no file of the tree changes. Faults that change nothing, with the
// reason, are in equivalent.txt.
//
// Faults that no test noticed are printed at once, and so are faults that only a timeout noticed, which are
// counted apart: the machine may have been slow.
//
// Tools such as gremlins and go-mutesting change every place of a package, without a sample and without
// rules of CEL: for these packages that takes days.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// leastNoticed is the bar of each package, and mostEquivalent how many of its faults may be called
// equivalent.
const (
	leastNoticed   = 0.9
	mostEquivalent = 0.1
)

// A test with a fault may take slowdown times as long as all tests do without one, at least leastTimeout.
const (
	longestTests = 10 * time.Minute
	slowdown     = 3
	leastTimeout = time.Minute
)

// output is where the faults that no test noticed are written.
const output = "dist/mutants.txt"

func main() {
	seed := flag.String("seed", "", "chooses the faults; empty: the commit")
	number := flag.Int("n", 20, "faults of each package")
	changed := flag.String("changed", "", "look only at packages that differ from this commit")
	workers := flag.Int("p", 2, "faults at a time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, options{*seed, *number, *changed, *workers}, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

type options struct {
	seed    string
	number  int
	changed string
	workers int
}

func run(ctx context.Context, o options, names []string) error {
	if o.seed == "" {
		head, err := exec.CommandContext(ctx, "git", "rev-parse", "HEAD").Output()
		if err != nil {
			return fmt.Errorf("reading the commit: %w", err)
		}
		o.seed = strings.TrimSpace(string(head))
	}
	targets, err := choose(ctx, names, o.changed)
	if err != nil {
		return err
	}
	fmt.Printf("-seed=%s repeats these faults\n", o.seed)
	var survivors []string
	var failed []error
	for _, t := range targets {
		r, err := t.play(ctx, o)
		if err != nil {
			return fmt.Errorf("%s: %w", t.dir, err)
		}
		fmt.Println(&r)
		failed = append(failed, r.failure())
		survivors = append(survivors, r.survivors...)
	}
	if err := os.MkdirAll(filepath.Dir(output), 0o750); err != nil {
		return fmt.Errorf("making a folder for the results: %w", err)
	}
	if err := os.WriteFile(output, []byte(strings.Join(survivors, "\n")+"\n"), 0o600); err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	return errors.Join(failed...)
}

// choose returns the targets with these names, or all targets without names. With a commit it returns
// only targets that differ from the commit.
func choose(ctx context.Context, names []string, changed string) ([]target, error) {
	for i, name := range names {
		names[i] = filepath.Clean(name)
	}
	var out []target
	for _, t := range targets {
		if len(names) == 0 || slices.Contains(names, t.dir) {
			out = append(out, t)
		}
	}
	if len(names) > len(out) {
		return nil, fmt.Errorf("not all of %s are in target.go", strings.Join(names, ", "))
	}
	if changed == "" {
		return out, nil
	}
	diff, err := exec.CommandContext(ctx, "git", "diff", "--name-only", changed).Output()
	if err != nil {
		return nil, fmt.Errorf("comparing with %s: %w", changed, err)
	}
	differs := map[string]bool{}
	for file := range strings.SplitSeq(string(diff), "\n") {
		differs[filepath.Dir(file)] = true
	}
	return slices.DeleteFunc(out, func(t target) bool { return !differs[t.dir] }), nil
}

// A result is what the tests of a package noticed.
type result struct {
	dir                 string
	noticed, equivalent int
	timedOut            int // of those noticed
	survivors           []string
}

func (r *result) String() string {
	return fmt.Sprintf("%-40s %d noticed, %d of them by a timeout, %d not, %d equivalent",
		r.dir, r.noticed, r.timedOut, len(r.survivors), r.equivalent)
}

// failure returns an error if the tests of a package notice too few faults.
func (r *result) failure() error {
	all := r.noticed + len(r.survivors)
	switch {
	case all == 0 && r.equivalent == 0:
		return fmt.Errorf("no fault of %s was tested: none builds, or its tests do not begin", r.dir)
	case float64(r.noticed) < leastNoticed*float64(all):
		return fmt.Errorf("the tests of %s notice %d of %d faults, less than 90 %%: see %s", r.dir, r.noticed, all, output)
	case float64(r.equivalent) > mostEquivalent*float64(all+r.equivalent):
		return fmt.Errorf("of %s, %d of %d faults are called equivalent, more than one in ten", r.dir, r.equivalent, all+r.equivalent)
	}
	return nil
}

// play tries faults of a package until enough of them could be compiled.
func (t target) play(ctx context.Context, o options) (result, error) {
	faults, err := t.faults(o.seed)
	if err != nil {
		return result{}, err
	}
	begin := time.Now()
	if v, err := t.try(ctx, faults[0].undone(), longestTests); err != nil || v != survived {
		return result{}, errors.Join(err, errors.New("its tests fail without a fault"))
	}
	timeout := max(leastTimeout, slowdown*time.Since(begin)).Round(time.Second)
	g := game{result: result{dir: t.dir}, faults: faults, left: o.number}
	var wait sync.WaitGroup
	for range o.workers {
		wait.Go(func() {
			for f, more := g.next(); more; f, more = g.next() {
				v, err := t.try(ctx, f, timeout)
				g.done(f, v, err)
			}
		})
	}
	wait.Wait()
	return g.result, g.failed
}

// A game is a package whose faults are tried at the same time.
type game struct {
	mu     sync.Mutex
	result result
	failed error
	faults []fault
	left   int // how many are to be tried yet
}

// next returns the next fault to try; false: there is none.
func (g *game) next() (fault, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failed != nil || len(g.faults) == 0 || g.left == 0 {
		return fault{}, false
	}
	f := g.faults[0]
	g.faults, g.left = g.faults[1:], g.left-1
	return f, true
}

// done counts the verdict on a fault. If no test was asked, another fault is tried.
func (g *game) done(f fault, v verdict, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failed = errors.Join(g.failed, err)
	if v == untested {
		g.left++
	}
	g.result.count(f, v)
	switch {
	case v == untested:
		fmt.Println("does not build, or its tests do not begin:", f)
	case v == timedOut:
		fmt.Println("only a timeout:", f)
	case v == survived && !isEquivalent(f):
		fmt.Println("not noticed:", f)
	}
}

func (r *result) count(f fault, v verdict) {
	switch {
	case v == untested:
	case v == timedOut:
		r.noticed++
		r.timedOut++
	case v == noticed:
		r.noticed++
	case isEquivalent(f):
		r.equivalent++
	default:
		r.survivors = append(r.survivors, f.String())
	}
}

//go:embed equivalent.txt
var equivalents string

// isEquivalent reports whether a fault is known to change nothing.
func isEquivalent(f fault) bool {
	for line := range strings.SplitSeq(equivalents, "\n") {
		if known, _, is := strings.Cut(line, " # "); is && known == f.String() {
			return true
		}
	}
	return false
}
