package cli

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// watchEvery is how many intervals of the Factory pass between two looks at the Runs: a list of
// 10,000 Runs costs the API server about a tenth of a second.
const watchEvery = 2

// A rowWatcher prints the Runs of a list that change.
type rowWatcher struct {
	lister
	chosen runFilter
}

// watch prints a line for each Run that is new or has changed, until the user ends the command. A Run
// that leaves the selected states is printed once more.
func (w rowWatcher) watch(ctx context.Context, rows []runRow) error {
	shown := map[types.UID]string{}
	for _, r := range rows {
		shown[r.Object.Metadata.UID] = r.state()
	}
	saidWhy := ""
	for {
		timer := time.NewTimer(watchEvery * w.Interval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		rows, err := w.rows(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the user ended the command
		case isUnreachable(err), isServerError(err):
			if why := explain(err); why != saidWhy {
				saidWhy = why
				fmt.Fprintln(w.Err, "Cannot list Runs and tries again: "+why)
			}
			continue
		case err != nil:
			return err
		}
		if err := w.printChanged(rows, shown); err != nil {
			return err
		}
	}
}

// printChanged prints the rows that differ from the shown ones, oldest first.
func (w rowWatcher) printChanged(rows []runRow, shown map[types.UID]string) error {
	var listed []runRow
	var changed []bool
	slices.SortStableFunc(rows, func(a, b runRow) int {
		return a.Object.Metadata.CreationTimestamp.Compare(b.Object.Metadata.CreationTimestamp.Time)
	})
	for _, r := range rows {
		before, seen := shown[r.Object.Metadata.UID]
		if !seen && !w.chosen.has(factsOfRow(r)) {
			continue
		}
		shown[r.Object.Metadata.UID] = r.state()
		changed = append(changed, !seen || before != r.state())
		listed = append(listed, r)
	}
	text := &bytes.Buffer{} // the rows that are left out keep the columns as wide as they were
	if err := w.printRows(text, listed); err != nil {
		return err
	}
	lines := strings.Split(text.String(), "\n")
	if w.o.output != outputName {
		lines = lines[1:] // without the header
	}
	for i, prints := range changed {
		if !prints {
			continue
		}
		if _, err := fmt.Fprintln(w.Out, lines[i]); err != nil {
			return err
		}
	}
	return nil
}

// state returns the cells whose change causes another line: all but the age.
func (r runRow) state() string {
	var cells []string
	for name, i := range r.columns {
		if name != "Age" && i < len(r.Cells) {
			cells = append(cells, fmt.Sprint(name, r.Cells[i]))
		}
	}
	slices.Sort(cells)
	return strings.Join(cells, "\n")
}
