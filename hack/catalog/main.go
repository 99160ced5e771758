// Command catalog writes the list prices of the operator and the context windows of models from the
// npm package @pydantic/genai-prices: go run ./hack/catalog package.tgz date. The date is that of the
// package's publication. make catalog downloads the package.
package main

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/deckhand-dev/deckhand/internal/revision/listprices"
)

const (
	pricesFile  = "internal/revision/listprices/catalog.jsonl"
	windowsFile = "internal/shared/modelfacts/windows.go"
)

// maxFile bounds one file of the package, in bytes.
const maxFile = 16 << 20

var errMissing = errors.New("missing in the package")

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "catalog:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: catalog package.tgz 2026-09-23")

func run(args []string) error {
	if len(args) != 2 {
		return errUsage
	}
	files, err := read(args[0])
	if err != nil {
		return err
	}
	p, err := parse(files, args[1])
	if err != nil {
		return err
	}
	prices, err := p.prices(corrections)
	if err != nil {
		return err
	}
	windows, err := p.windows(corrections)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(pricesFile, prices, 0o644), os.WriteFile(windowsFile, windows, 0o644))
}

// read returns the files of a package by their names.
func read(path string) (map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for r := tar.NewReader(unzipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(io.LimitReader(r, maxFile))
		if err != nil {
			return nil, err
		}
		files[h.Name] = string(content)
	}
}

// A list has the prices of the package, and their source.
type list struct {
	listprices.Header

	sources []source
}

// parse reads the list of a package.
func parse(files map[string]string, date string) (list, error) {
	var about struct{ Name, Version string }
	if err := json.Unmarshal([]byte(files["package/package.json"]), &about); err != nil {
		return list{}, fmt.Errorf("reading package.json: %w", err)
	}
	out := list{Header: listprices.Header{Source: about.Name + " " + about.Version, Date: date, License: files["package/LICENSE"]}}
	const start = `[{id:"`
	_, after, found := strings.Cut(files["package/dist/index.cjs"], start)
	if !found {
		return out, fmt.Errorf("the list of providers: %w", errMissing)
	}
	value, err := (&literal{text: start + after}).value()
	if err != nil {
		return out, err
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(encoded, &out.sources)
}

// prices returns the file of the prices.
func (l list) prices(by []correction) ([]byte, error) {
	rows, err := rowsOf(l.sources, l.Date)
	if err != nil {
		return nil, err
	}
	if rows, err = corrected(rows, by); err != nil {
		return nil, err
	}
	return listprices.Encode(l.Header, rows)
}
