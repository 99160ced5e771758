// Command reference writes pages of docs/reference from their sources: reasons.md from the doc comments of
// api/v1alpha1/conditions.go, chart-values.md from the comments of the chart's values.yaml, metrics.md from
// internal/run/runmetrics.
package main

import (
	"fmt"
	"os"

	"github.com/deckhand-dev/deckhand/internal/run/runmetrics"
)

func main() {
	for page, write := range map[string]func() (string, error){
		"docs/reference/reasons.md":      func() (string, error) { return fromFile("api/v1alpha1/conditions.go", reasons) },
		"docs/reference/chart-values.md": func() (string, error) { return fromFile("charts/deckhand/values.yaml", chartValues) },
		"docs/reference/metrics.md":      func() (string, error) { return metrics(runmetrics.Families()), nil },
	} {
		text, err := write()
		if err == nil {
			err = os.WriteFile(page, []byte(text), 0o600)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "reference: writing %s: %v\n", page, err)
			os.Exit(1)
		}
	}
}

func fromFile(path string, page func(source []byte) (string, error)) (string, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	return page(source)
}
