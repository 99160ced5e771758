package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/deckhand-dev/deckhand/internal/revision/listprices"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A correction is what the provider documents otherwise than the package does.
type correction struct {
	// replaces are the rows of the package, by their provider and model.
	replaces [][2]string
	// rows are in their place; none: the provider serves no model of the name.
	rows []listprices.Row
}

const (
	deepSeekPrices = "https://api-docs.deepseek.com/quick_start/pricing"
	deepSeekRead   = "2026-11-28"
)

// corrections are written by hand. Each row has the address of its page, and when it was read.
var corrections = []correction{
	// deepseek-v4-flash is served by deepseek-flash at its price. At weekends and on Chinese holidays it
	// costs half of what the rows say for these hours.
	{
		replaces: [][2]string{{"deepseek", "deepseek-v4-flash"}},
		rows: []listprices.Row{{
			Provider: "deepseek", Model: "deepseek-flash", Match: [][]string{{"=deepseek-flash"}, {"^deepseek-v4-flash"}, {"=deepseek-v4-flash-vision-exp"}},
			Prices: task.Prices{Input: 150_000, Output: 600_000, CacheRead: 3_000, CacheWrite: 150_000, Changes: []task.PriceChange{
				{Start: "01:00", End: "04:00", Input: 300_000, Output: 1_200_000, CacheRead: 6_000, CacheWrite: 300_000},
				{Start: "06:00", End: "10:00", Input: 300_000, Output: 1_200_000, CacheRead: 6_000, CacheWrite: 300_000},
			}},
			Source: deepSeekPrices, Date: deepSeekRead,
		}},
	},
	// DeepSeek has not served these names since 2026-07-24: https://api-docs.deepseek.com/.
	{replaces: [][2]string{{"deepseek", "deepseek-chat"}, {"deepseek", "deepseek-reasoner"}}},
}

var errCorrected = errors.New("the package has no such row: remove the correction")

// corrected returns rows with the corrections.
func corrected(rows []listprices.Row, corrections []correction) ([]listprices.Row, error) {
	for _, c := range corrections {
		at := len(rows)
		for _, name := range c.replaces {
			i := slices.IndexFunc(rows, func(r listprices.Row) bool { return r.Provider == name[0] && r.Model == name[1] })
			if i < 0 {
				return nil, fmt.Errorf("%s %s: %w", name[0], name[1], errCorrected)
			}
			rows, at = slices.Delete(rows, i, i+1), min(at, i)
		}
		rows = slices.Insert(rows, at, c.rows...)
	}
	return rows, nil
}
