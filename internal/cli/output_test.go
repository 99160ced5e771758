package cli

import (
	"strings"
	"testing"
)

// A row whose last cells are empty leaves the columns of the rows below it where they are.
func TestRowsWithEmptyCellsKeepTheColumns(t *testing.T) {
	var out strings.Builder
	table := newTable(&out, "NAME", "STEPS", "TIME")
	table.row("a", "1", "1m0s")
	table.row("waits", "", "")
	table.row("much-longer", "", "2s")
	table.row("b", "12345", "3s")
	if err := table.print(); err != nil {
		t.Fatal(err)
	}
	want := "NAME          STEPS   TIME\na             1       1m0s\nwaits\nmuch-longer           2s\nb             12345   3s\n"
	if out.String() != want {
		t.Errorf("%s", out.String())
	}
}
