// Command reliability writes the tables of docs/reliability.md: make
// reliability.
//
//	reliability [FILE...]
//
// The rows are in rows.yaml. Each FILE holds test events as `go test -json`
// prints them; a row's result comes from them and from nothing else. Without a
// FILE, rows whose tests are unchanged keep the result that the page shows.
//
//	reliability -check FILE...
//
// writes nothing, and fails unless each row with tests passed.
//
//	reliability -packages
//	reliability -e2e
//
// print which packages the rows name and, as an argument of `go test -run`,
// which tests of test/e2e.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
)

// page is what is written, seen from the root of the repository.
const page = "docs/reliability.md"

func main() {
	packages := flag.Bool("packages", false, "print the packages of the rows, without test/e2e")
	cluster := flag.Bool("e2e", false, "print the names of the rows' tests of test/e2e")
	check := flag.Bool("check", false, "fail unless each row with tests passed, and write nothing")
	flag.Parse()
	do := write
	switch {
	case *packages:
		do = printed(func(rows []resolved) string { return strings.Join(packagesOf(rows), "\n") })
	case *cluster:
		do = printed(pattern)
	case *check:
		do = checkResults
	}
	if err := run(do, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "reliability:", err)
		os.Exit(1)
	}
}

// printed prints a text about the rows.
func printed(text func([]resolved) string) func([]resolved, []string) error {
	return func(rows []resolved, _ []string) error {
		fmt.Println(text(rows))
		return nil
	}
}

// run does something with the rows and the files.
func run(do func(rows []resolved, files []string) error, files []string) error {
	tables, err := load()
	if err != nil {
		return err
	}
	tests, err := scan(".")
	if err != nil {
		return err
	}
	rows, err := resolve(tables, tests)
	if err != nil {
		return err
	}
	return do(rows, files)
}

// checkResults reports the rows with tests that failed or did not run.
func checkResults(rows []resolved, files []string) error {
	ran, err := record(files)
	if err != nil {
		return err
	}
	var wrong []error
	for _, r := range rows {
		if result := resultOf(r, ran); result != passed && result != noTest {
			wrong = append(wrong, fmt.Errorf("row %s (%s): %s", r.ID, result, r.Fault))
		}
	}
	return errors.Join(wrong...)
}

// write renders the page and reports the rows that failed.
func write(rows []resolved, files []string) error {
	old, err := os.ReadFile(page)
	if err != nil {
		return fmt.Errorf("reading the page: %w", err)
	}
	results := kept(string(old), rows)
	if len(files) > 0 {
		ran, err := record(files)
		if err != nil {
			return err
		}
		results = resultsOf(rows, ran)
	}
	fresh, err := render(string(old), rows, results)
	if err != nil {
		return err
	}
	if err := os.WriteFile(page, []byte(fresh), 0o600); err != nil {
		return err
	}
	var failures []error
	for _, r := range rows {
		if results[r.ID] == failed {
			failures = append(failures, fmt.Errorf("%s failed: %s", r.ID, r.Fault))
		}
	}
	return errors.Join(failures...)
}
