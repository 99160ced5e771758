package main

import (
	"strings"
	"testing"
)

func TestReasonsAreRows(t *testing.T) {
	t.Parallel()
	page, err := reasons([]byte(`package x

// Reasons of Ready. They stand in conditions.
const (
	// ReasonModelNotFound (False): spec.model names a Model that does not exist.
	// Remedy: create the Model | or name another.
	ReasonModelNotFound = "ModelNotFound"
)

// ReasonFinished (True): the result is committed.
const ReasonFinished = "Finished"

// Names are no constants.
var Names = []string{"x"}
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"## Reasons of Ready\n\nThey stand in conditions.\n",
		"| `ModelNotFound` (False) | spec.model names a Model that does not exist. | Create the Model \\| or name another. |\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, "Names") {
		t.Error("the page lists a variable")
	}
}

func TestChartValuesAreRows(t *testing.T) {
	t.Parallel()
	page, err := chartValues([]byte(`# Values of the chart.

# The image.
# An empty tag is the appVersion.
image:
  tag: ""
replicas: 1
pull: [] # beside it
`))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(page, "|---|---|---|\n")
	want := "| `image` | | The image. An empty tag is the appVersion. |\n| `image.tag` | `\"\"` |  |\n| `replicas` | `1` |  |\n| `pull` | `[]` |  |\n"
	if table != want {
		t.Errorf("the table is\n%s\nwant\n%s", table, want)
	}
}
