package main

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/revision/listprices"
	"github.com/deckhand-dev/deckhand/internal/shared/modelfacts"
	"github.com/deckhand-dev/deckhand/runner/task"
)

const bundle = `"use strict";const E=[{id:"openai",name:"O",models:[` +
	`{id:"flat",context_window:4e5,description:` + "`It's \\`quoted\\`\n`" + `,deprecated:!0,match:{or:[{equals:"Flat"},{regex:"^flat-\\d{8}$"}]},prices:{input_mtok:.25,output_mtok:2,cache_read_mtok:.0028}},` +
	`{id:"tiered",match:{and:[{starts_with:"t"},{regex:"^(?!.*-tts)"}]},prices:{input_mtok:{base:1,tiers:[{start:2e5,price:2}]},output_mtok:3}},` +
	`{id:"later",match:{equals:"l"},prices:[{prices:{input_mtok:9,output_mtok:9}},{constraint:{start_date:"2026-01-01",type:"start_date"},prices:{input_mtok:8,output_mtok:8}},` +
	`{constraint:{start_date:"2027-01-01",type:"start_date"},prices:{input_mtok:7,output_mtok:7}},{constraint:{start_time:"01:00:00Z",end_time:"04:00:00Z",type:"time_of_date"},prices:{input_mtok:6,output_mtok:6}}]},` +
	`{id:"images",match:{equals:"i"},prices:{input_mtok:1,output_mtok:1,output_image_mtok:40}},{id:"free",match:{equals:"f"},prices:{}}]},` +
	`{id:"elsewhere",models:[{id:"e",match:{equals:"e"},prices:{input_mtok:1,output_mtok:1}}]}],X=1;`

func flat(n int64) task.Prices {
	return task.Prices{Input: n * 1e6, Output: n * 1e6, CacheRead: n * 1e6, CacheWrite: n * 1e6}
}

func parsed(t *testing.T) list {
	t.Helper()
	p, err := parse(map[string]string{"package/package.json": `{"name":"p","version":"1"}`, "package/dist/index.cjs": bundle, "package/LICENSE": "MIT"}, "2026-09-23")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRowsOfAPackage(t *testing.T) {
	p := parsed(t)
	got, err := p.prices(nil)
	if err != nil {
		t.Fatal(err)
	}
	later := flat(8)
	later.Changes = []task.PriceChange{
		{From: "2027-01-01", Input: 7e6, Output: 7e6, CacheRead: 7e6, CacheWrite: 7e6},
		{Start: "01:00", End: "04:00", Input: 6e6, Output: 6e6, CacheRead: 6e6, CacheWrite: 6e6},
	}
	want, err := listprices.Encode(listprices.Header{Source: "p 1", Date: "2026-09-23", License: "MIT"}, []listprices.Row{
		{Provider: "openai", Model: "flat", Match: [][]string{{"=flat"}, {`/^flat-\d{8}$`}}, Prices: task.Prices{Input: 250_000, Output: 2_000_000, CacheRead: 2800, CacheWrite: 250_000}},
		{Provider: "openai", Model: "tiered", Match: [][]string{{"^t", "!^(?:.*-tts)"}}, Prices: task.Prices{
			Input: 1e6, Output: 3e6, CacheRead: 1e6, CacheWrite: 1e6, Tiers: []task.PriceTier{{Above: 200_000, Input: 2e6, Output: 3e6, CacheRead: 2e6, CacheWrite: 2e6}},
		}},
		{Provider: "openai", Model: "later", Match: [][]string{{"=l"}}, Prices: later},
	})
	if diff := cmp.Diff(string(want), string(got)); err != nil || diff != "" {
		t.Errorf("error %v, -want +got:\n%s", err, diff)
	}
}

func TestCorrectionsReplaceRows(t *testing.T) {
	row := func(model string) listprices.Row { return listprices.Row{Provider: "openai", Model: model} }
	rows := func() []listprices.Row { return []listprices.Row{row("a"), row("b"), row("c")} }
	by := correction{replaces: [][2]string{{"openai", "b"}, {"openai", "c"}}, rows: []listprices.Row{row("d")}}
	got, err := corrected(rows(), []correction{by})
	if diff := cmp.Diff([]listprices.Row{row("a"), row("d")}, got); err != nil || diff != "" {
		t.Errorf("error %v, -want +got:\n%s", err, diff)
	}
	by.replaces[0][1] = "e"
	if got, err := corrected(rows(), []correction{by}); !errors.Is(err, errCorrected) {
		t.Errorf("a row that is not there is corrected: error %v, %v", err, got)
	}
}

// Whoever reads a correction finds its page.
func TestCorrectionsSayWhereTheyAreFrom(t *testing.T) {
	for _, c := range corrections {
		for _, r := range c.rows {
			if read, err := time.Parse(time.DateOnly, r.Date); err != nil || read.After(time.Now()) || !strings.HasPrefix(r.Source, "https://") {
				t.Errorf("%s %s: source %q, date %q", r.Provider, r.Model, r.Source, r.Date)
			}
		}
	}
}

func TestWindowsOfAPackage(t *testing.T) {
	const want = "\t{\"openai\", 400000, [][]string{{\"=flat\"}}},\n"
	p := parsed(t)
	got, err := p.windows(nil)
	if err != nil || !strings.Contains(string(got), want) || strings.Contains(string(got), "tiered") {
		t.Errorf("error %v:\n%s", err, got)
	}
	by := correction{replaces: [][2]string{{"openai", "flat"}}}
	if got, err := p.windows([]correction{by}); err != nil || strings.Contains(string(got), want) {
		t.Errorf("a row that is corrected has a window: error %v:\n%s", err, got)
	}
}

// Both files are written together.
func TestPricesAndWindowsAreOfOneList(t *testing.T) {
	prices, err := os.ReadFile("../../" + pricesFile)
	if err != nil {
		t.Fatal(err)
	}
	var h listprices.Header
	head, _, _ := strings.Cut(string(prices), "\n")
	if err := json.Unmarshal([]byte(head), &h); err != nil || h.Source != modelfacts.ListSource || h.Date != modelfacts.ListDate {
		t.Errorf("run make catalog: prices of %s, %s and windows of %s, %s (error %v)", h.Source, h.Date, modelfacts.ListSource, modelfacts.ListDate, err)
	}
}

func TestLiteralsThatAreRefused(t *testing.T) {
	for _, text := range []string{"", "[", "{a:1", "{a 1}", "[1 2]", "`${x}`", `"\u0041"`, `"open`, "f()", "-", "1e"} {
		if v, err := (&literal{text: text}).value(); err == nil {
			t.Errorf("%s is read as %v", text, v)
		}
	}
}
