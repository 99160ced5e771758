// Command catalog writes the list prices of the operator from the npm package
// @pydantic/genai-prices: go run ./hack/catalog package.tgz date. The date is that of the
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

	"github.com/deckhand-dev/deckhand/internal/listprices"
)

const out = "internal/listprices/catalog.jsonl"

// maxFile bounds one file of the package, in bytes.
const maxFile = 16 << 20

var errMissing = errors.New("missing in the package")

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "catalog:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: catalog package.tgz 2026-09-23") //nolint:err113 // printed once
	}
	files, err := read(args[0])
	if err != nil {
		return err
	}
	data, err := render(files, args[1])
	if err != nil {
		return err
	}
	return os.WriteFile(out, data, 0o644)
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

// render returns the file of the catalog.
func render(files map[string]string, date string) ([]byte, error) {
	var about struct{ Name, Version string }
	if err := json.Unmarshal([]byte(files["package/package.json"]), &about); err != nil {
		return nil, fmt.Errorf("reading package.json: %w", err)
	}
	const start = `[{id:"`
	_, after, found := strings.Cut(files["package/dist/index.cjs"], start)
	if !found {
		return nil, fmt.Errorf("the list of providers: %w", errMissing)
	}
	value, err := (&literal{text: start + after}).value()
	if err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var sources []source
	if err := json.Unmarshal(encoded, &sources); err != nil {
		return nil, err
	}
	rows, err := rowsOf(sources, date)
	if err != nil {
		return nil, err
	}
	return listprices.Encode(listprices.Header{Source: about.Name + " " + about.Version, Date: date, License: files["package/LICENSE"]}, rows)
}
