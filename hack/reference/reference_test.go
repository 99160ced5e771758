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
	// ReasonNotFound (False): spec.model names a Model that does not exist.
	// Remedy: create the Model | or name another.
	ReasonNotFound = "NotFound"
)

// Names are no constants.
var Names = []string{"x"}
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"## Reasons of Ready\n\nThey stand in conditions.\n",
		"| `NotFound` (False) | spec.model names a Model that does not exist. | Create the Model \\| or name another. |\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, "Names") {
		t.Error("the page lists a variable")
	}
}

func TestReasonsWithoutStatusOrRemedyAreErrors(t *testing.T) {
	t.Parallel()
	for name, comment := range map[string]string{
		"no comment": "",
		"no status":  "// ReasonX: it is late. Remedy: Wait.",
		"no remedy":  "// ReasonX (False): it is late.",
		"no cause":   "// ReasonX (False): Remedy: Wait.",
	} {
		source := "package x\n\n// Reasons.\nconst (\n\t" + comment + "\n\tReasonX = \"X\"\n)\n"
		if page, err := reasons([]byte(source)); err == nil {
			t.Errorf("%s: no error, but\n%s", name, page)
		}
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
