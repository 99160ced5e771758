package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/internal/revision/listprices"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// providers are the providers of the package whose models the operator supports.
var providers = []string{"anthropic", "aws", "azure", "deepseek", "google", "groq", "mistral", "moonshotai", "openai", "openrouter", "x-ai"}

// counted are the units of the package that a Run's usage has, or that do not occur in a Run. A model
// with any other has no row: its cost would be incomplete.
var counted = []string{
	"input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok", "cache_write_1h_mtok",
	"web_searches_kcount", "storage_searches_kcount", "input_audio_mtok", "cache_audio_read_mtok",
}

var (
	errUnknownForm = errors.New("a form that this generator does not know")
	errNotByToken  = errors.New("not paid by tokens of text alone")
)

// A source is a provider of the package.
type source struct {
	ID     string `json:"id"`
	Models []sold `json:"models"`
}

// A sold is a model that a provider of the package sells.
type sold struct {
	ID     string          `json:"id"`
	Match  json.RawMessage `json:"match"`
	Prices json.RawMessage `json:"prices"`
	Window json.Number     `json:"context_window"`
}

// A conditional is the prices of a time.
type conditional struct {
	Constraint struct {
		Type      string `json:"type"`
		StartDate string `json:"start_date"`
		StartTime string `json:"start_time"`
		EndTime   string `json:"end_time"`
	} `json:"constraint"`
	Prices map[string]json.RawMessage `json:"prices"`
}

// rowsOf returns the rows of the catalog. Prices that another replaced before the date are left out.
func rowsOf(sources []source, date string) ([]listprices.Row, error) {
	var out []listprices.Row
	for _, s := range sources {
		if !slices.Contains(providers, s.ID) {
			continue
		}
		for _, m := range s.Models {
			row, err := rowOf(s.ID, m, date)
			switch {
			case err == nil:
				out = append(out, row)
			case !errors.Is(err, errNotByToken):
				return nil, fmt.Errorf("%s %s: %w", s.ID, m.ID, err)
			}
		}
	}
	return out, nil
}

func rowOf(provider string, m sold, date string) (listprices.Row, error) {
	prices, err := pricesOf(m.Prices, date)
	if err != nil {
		return listprices.Row{}, err
	}
	match, err := matchOf(m.Match)
	return listprices.Row{Provider: provider, Model: m.ID, Match: match, Prices: prices}, err
}

// pricesOf returns the prices of a model. The error is errNotByToken if it is not paid by the token.
func pricesOf(raw json.RawMessage, date string) (task.Prices, error) {
	var all []conditional
	if raw[0] != '[' {
		raw = json.RawMessage(`[{"prices":` + string(raw) + `}]`)
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		return task.Prices{}, err
	}
	all = all[current(all, date):]
	out, err := tiersOf(all[0].Prices)
	if err != nil {
		return out, err
	}
	for _, c := range all[1:] {
		change, err := c.change()
		if err != nil {
			return out, err
		}
		out.Changes = append(out.Changes, change)
	}
	return out, nil
}

// current returns the index of the prices that hold at a date. Later ones change them.
func current(all []conditional, date string) int {
	first := 0
	for i, c := range all {
		if c.Constraint.Type == "" || c.Constraint.Type == "start_date" && c.Constraint.StartDate <= date {
			first = i
		}
	}
	return first
}

// change returns prices that hold from a day on, or for hours of each day.
func (c conditional) change() (task.PriceChange, error) {
	p, err := tiersOf(c.Prices)
	change := task.PriceChange{Input: p.Input, Output: p.Output, CacheRead: p.CacheRead, CacheWrite: p.CacheWrite, Tiers: p.Tiers}
	switch c.Constraint.Type {
	case "start_date":
		change.From = c.Constraint.StartDate
	case "time_of_date":
		change.Start, change.End = strings.TrimSuffix(c.Constraint.StartTime, ":00Z"), strings.TrimSuffix(c.Constraint.EndTime, ":00Z")
	default:
		return change, fmt.Errorf("constraint %q: %w", c.Constraint.Type, errUnknownForm)
	}
	return change, err
}

// A stepped is a price that depends on the input tokens of a request.
type stepped struct {
	Base  json.Number `json:"base"`
	Tiers []struct {
		Start int64       `json:"start"`
		Price json.Number `json:"price"`
	} `json:"tiers"`
}

// at returns the price of a request with more than above tokens.
func (s stepped) at(above int64) json.Number {
	out := s.Base
	for _, t := range s.Tiers {
		if t.Start <= above {
			out = t.Price
		}
	}
	return out
}

// tiersOf returns the prices of requests by their input tokens.
func tiersOf(prices map[string]json.RawMessage) (task.Prices, error) {
	var out task.Prices
	units, err := unitsOf(prices)
	if err != nil {
		return out, err
	}
	bounds := []int64{0}
	for _, s := range units {
		for _, t := range s.Tiers {
			bounds = append(bounds, t.Start)
		}
	}
	slices.Sort(bounds)
	for i, above := range slices.Compact(bounds) {
		t, err := tierAt(units, above)
		if err != nil {
			return out, err
		}
		if i == 0 {
			out = task.Prices{Input: t.Input, Output: t.Output, CacheRead: t.CacheRead, CacheWrite: t.CacheWrite}
			continue
		}
		out.Tiers = append(out.Tiers, t)
	}
	return out, nil
}

// unitsOf returns the prices of a model by their units, with input and output.
func unitsOf(prices map[string]json.RawMessage) (map[string]stepped, error) {
	units := map[string]stepped{}
	for unit, raw := range prices {
		if !slices.Contains(counted, unit) {
			return nil, errNotByToken
		}
		var s stepped
		if raw[0] != '{' {
			raw = json.RawMessage(`{"base":` + string(raw) + `}`)
		}
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, err
		}
		units[unit] = s
	}
	_, hasInput := units["input_mtok"]
	_, hasOutput := units["output_mtok"]
	if !hasInput || !hasOutput {
		return nil, errNotByToken
	}
	return units, nil
}

// tierAt returns the prices of requests with more than above input tokens. A kind of token without a price costs as
// much as input.
func tierAt(units map[string]stepped, above int64) (task.PriceTier, error) {
	t := task.PriceTier{Above: above}
	for _, f := range []struct {
		unit string
		to   *int64
	}{{"input_mtok", &t.Input}, {"output_mtok", &t.Output}, {"cache_read_mtok", &t.CacheRead}, {"cache_write_mtok", &t.CacheWrite}} {
		s, has := units[f.unit]
		if !has {
			s = units["input_mtok"]
		}
		micro, err := micro(s.at(above))
		if err != nil {
			return t, fmt.Errorf("%s: %w", f.unit, err)
		}
		*f.to = micro
	}
	return t, nil
}

// micro returns dollars in millionths, rounded half up.
func micro(dollars json.Number) (int64, error) {
	r, ok := new(big.Rat).SetString(dollars.String())
	if !ok || r.Sign() < 0 {
		return 0, fmt.Errorf("price %q: %w", dollars, errUnknownForm)
	}
	r.Add(r.Mul(r, big.NewRat(1_000_000, 1)), big.NewRat(1, 2))
	return new(big.Int).Div(r.Num(), r.Denom()).Int64(), nil
}

var marks = map[string]string{"equals": "=", "starts_with": "^", "contains": "~", "ends_with": "$"}

// matchOf returns a match of the package as alternatives of clauses that all must hold.
func matchOf(raw json.RawMessage) ([][]string, error) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil || len(m) != 1 {
		return nil, fmt.Errorf("match %s: %w", raw, errUnknownForm)
	}
	for kind, value := range m {
		switch kind {
		case "or", "and":
			return matchAll(kind, value)
		case "regex":
			clause, err := regexOf(value)
			return [][]string{{clause}}, err
		}
		var text string
		if err := json.Unmarshal(value, &text); err != nil || marks[kind] == "" {
			return nil, fmt.Errorf("match %s: %w", raw, errUnknownForm)
		}
		return [][]string{{marks[kind] + strings.ToLower(text)}}, nil
	}
	return nil, errUnknownForm
}

func matchAll(kind string, value json.RawMessage) ([][]string, error) {
	var parts []json.RawMessage
	if err := json.Unmarshal(value, &parts); err != nil {
		return nil, err
	}
	var out [][]string
	for i, part := range parts {
		alternatives, err := matchOf(part)
		switch {
		case err != nil:
			return nil, err
		case kind == "or" || i == 0:
			out = append(out, alternatives...)
		case len(alternatives) > 1 || len(out) > 1:
			return nil, fmt.Errorf("alternatives within and: %w", errUnknownForm)
		default:
			out[0] = append(out[0], alternatives[0]...)
		}
	}
	return out, nil
}

// regexOf returns a clause of a regular expression. Go has no negative lookahead: if it is the whole
// expression, it becomes an expression that must not match.
func regexOf(value json.RawMessage) (string, error) {
	var text string
	if err := json.Unmarshal(value, &text); err != nil {
		return "", err
	}
	mark := "/"
	if not, found := strings.CutPrefix(text, "^(?!"); found {
		mark, text = "!", "^(?:"+not
	}
	_, err := regexp.Compile(text)
	return mark + text, err
}

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
