package listprices

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// An Override is a list of an installation. Its rows replace rows of the catalog or add to them.
type Override struct {
	list v1alpha1.PriceList
	rows map[rowKey]overrideRow
}

// rowKey is the exact provider and modelID of Models.
type rowKey struct {
	provider v1alpha1.Provider
	model    string
}

type overrideRow struct {
	at     int // from 1
	prices *task.Prices
}

// overrideFile is the form of the file.
type overrideFile struct {
	Date string            `json:"date,omitempty"`
	Rows []json.RawMessage `json:"rows"`
}

// overrideFields are the fields of a row. Prices are as in spec.prices of a Model.
type overrideFields struct {
	Provider v1alpha1.Provider `json:"provider"`
	ModelID  string            `json:"modelID"`
	Prices   *v1alpha1.Prices  `json:"prices"`
}

// maxRows bounds the rows of an override.
const maxRows = 10_000

var providers = []v1alpha1.Provider{
	v1alpha1.ProviderOpenAI, v1alpha1.ProviderOpenAICompatible, v1alpha1.ProviderAnthropic, v1alpha1.ProviderAnthropicCompatible, v1alpha1.ProviderAzure, v1alpha1.ProviderBedrock,
	v1alpha1.ProviderOpenRouter, v1alpha1.ProviderOllama, v1alpha1.ProviderDeepSeek, v1alpha1.ProviderKimi, v1alpha1.ProviderCustom,
}

var (
	errOverride = errors.New("the list of prices is wrong")
	errUnread   = errors.New("the list of prices cannot be read")
)

// ParseOverride parses a list of prices in YAML. An error names the row and the field, and describes what to write. The
// source is shown in status.priceSource of a Model.
func ParseOverride(data []byte, source string) (*Override, error) {
	var file overrideFile
	if err := yaml.UnmarshalStrict(data, &file); err != nil {
		return nil, fmt.Errorf("%w: %s. Write date, and rows as a list", errUnread, yamlProblem(err))
	}
	if _, err := time.Parse(time.DateOnly, file.Date); err != nil && file.Date != "" {
		return nil, fmt.Errorf("%w: date is %q: write 2026-11-27, or remove it", errOverride, file.Date)
	}
	if len(file.Rows) == 0 || len(file.Rows) > maxRows {
		return nil, fmt.Errorf("%w: rows has %d entries: write 1 to %d", errOverride, len(file.Rows), maxRows)
	}
	o := &Override{list: v1alpha1.PriceList{Source: source, Date: file.Date}, rows: map[rowKey]overrideRow{}}
	for i, raw := range file.Rows {
		if err := o.add(i+1, raw); err != nil {
			return nil, fmt.Errorf("%w: row %d%w", errOverride, i+1, err)
		}
	}
	return o, nil
}

// yamlProblem returns the message of a YAML error, without the names of libraries.
func yamlProblem(err error) string {
	text := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
	return strings.TrimPrefix(strings.TrimPrefix(text, "error unmarshaling JSON: "), "while decoding JSON: ")
}

// A rowError continues a message that ends with the number of the row.
type rowError string

func (e rowError) Error() string { return string(e) }

func rowErrorf(format string, args ...any) error { return rowError(fmt.Sprintf(format, args...)) }

// add adds a row.
func (o *Override) add(at int, raw json.RawMessage) error {
	var r overrideFields
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return rowErrorf(": %s", fieldProblem(err))
	}
	name := fmt.Sprintf(" (%s %s)", r.Provider, r.ModelID)
	key := rowKey{r.Provider, r.ModelID}
	before, twice := o.rows[key]
	switch {
	case !slices.Contains(providers, r.Provider):
		return rowErrorf("%s: provider is %q: write that of the Model, for example OpenAICompatible", name, r.Provider)
	case r.ModelID == "":
		return rowErrorf("%s: modelID is missing: write that of the Model", name)
	case r.Prices == nil:
		return rowErrorf("%s: prices is missing: write {input: 3USD, output: 15USD}", name)
	case len(r.Prices.Tiers) > maxTiers:
		return rowErrorf("%s: prices.tiers has %d entries: write at most %d", name, len(r.Prices.Tiers), maxTiers)
	case twice:
		return rowErrorf("%s: provider and modelID are those of row %d too: remove one of the two", name, before.at)
	}
	prices, err := ForRunner(r.Prices)
	if err != nil {
		return rowErrorf("%s: prices.%v", name, err)
	}
	o.rows[key] = overrideRow{at, prices}
	return nil
}

// maxTiers is the bound of the API.
const maxTiers = 4

// fieldProblem returns which field of a row is wrong, and what to write.
func fieldProblem(err error) string {
	if wrong, is := errors.AsType[*json.UnmarshalTypeError](err); is {
		advice := "write a text, for example 3USD for a price"
		if wrong.Value == "string" || wrong.Value == "array" {
			advice = "write fields, for example prices: {input: 3USD, output: 15USD}"
		}
		return fmt.Sprintf("%s is of type %s: %s", wrong.Field, wrong.Value, advice)
	}
	if field, is := strings.CutPrefix(err.Error(), "json: unknown field "); is {
		return fmt.Sprintf("there is no field %s: write provider, modelID and prices with input, output, cacheRead, cacheWrite and tiers", field)
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// find returns the prices of a Model; nil: the list has no row for it.
func (o *Override) find(m v1alpha1.ModelSpec) *task.Prices {
	if o == nil {
		return nil
	}
	return o.rows[rowKey{m.Provider, m.ModelID}].prices
}

// Len returns the number of rows.
func (o *Override) Len() int {
	if o == nil {
		return 0
	}
	return len(o.rows)
}

// inForce is the override of this process and the error of a later one, which is not used.
type inForce struct {
	override *Override
	problem  string
}

var current atomic.Pointer[inForce]

// Use puts an override in force in this process; nil removes it.
func Use(o *Override) { current.Store(&inForce{override: o}) }

// Reject records why a newer list is not used. The current override stays in force.
func Reject(err error) {
	next := &inForce{problem: err.Error()}
	if now := current.Load(); now != nil {
		next.override = now.override
	}
	current.Store(next)
}

// Problem returns why the last list of the installation is not used; empty: it is used, or there is none.
func Problem() string {
	if now := current.Load(); now != nil {
		return now.problem
	}
	return ""
}
