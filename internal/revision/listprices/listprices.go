// Package listprices has the list prices of well-known models, so that the cost of a Run is known even if no user
// entered prices.
package listprices

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/shared/modelname"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Known are the known prices of a Model.
type Known struct {
	// Prices are nil if they are unknown.
	Prices *task.Prices
	Source v1alpha1.PriceSource
	// List is the list of prices, with Source Catalog only.
	List *v1alpha1.PriceList
}

// defaults are the hosts of the providers that have an endpoint of their own.
var defaults = map[v1alpha1.Provider]string{
	v1alpha1.ProviderOpenAI:     "https://api.openai.com",
	v1alpha1.ProviderAnthropic:  "https://api.anthropic.com",
	v1alpha1.ProviderOpenRouter: "https://openrouter.ai",
	v1alpha1.ProviderDeepSeek:   "https://api.deepseek.com",
	v1alpha1.ProviderKimi:       "https://api.moonshot.ai",
}

// hosts are the providers of the catalog by their hosts. Other hosts that serve a model under the same name have their
// own prices.
var hosts = map[string][]string{
	"api.openai.com":                    {"openai"},
	"api.anthropic.com":                 {"anthropic"},
	"openrouter.ai":                     {"openrouter"},
	"api.deepseek.com":                  {"deepseek"},
	"api.moonshot.ai":                   {"moonshotai"},
	"api.mistral.ai":                    {"mistral"},
	"api.x.ai":                          {"x-ai"},
	"api.groq.com":                      {"groq"},
	"generativelanguage.googleapis.com": {"google"},
}

var (
	azure   = regexp.MustCompile(`^[a-z0-9-]+\.(openai|services\.ai|cognitiveservices)\.azure\.com$`)
	bedrock = regexp.MustCompile(`^bedrock-runtime\.[a-z0-9-]+\.amazonaws\.com$`)
)

// find returns the first row for the name of a model.
func find(rows []Row, name string) (Row, bool) {
	for _, form := range modelname.Forms(name) {
		for _, r := range rows {
			if modelname.Fits(r.Match, form) {
				return r, true
			}
		}
	}
	return Row{}, false
}

// Sellers returns the providers of the catalog whose prices hold at the endpoint of a Model.
func Sellers(m v1alpha1.ModelSpec) []string {
	endpoint := m.BaseURL()
	if endpoint == "" {
		endpoint = defaults[m.Provider]
	}
	u, err := url.Parse(endpoint)
	if err != nil || m.Provider == v1alpha1.ProviderCustom || u.Scheme != "https" || u.Port() != "" && u.Port() != "443" {
		return nil
	}
	switch host := strings.ToLower(u.Hostname()); {
	case azure.MatchString(host):
		return []string{"azure", "openai", "anthropic"}
	case bedrock.MatchString(host):
		return []string{"aws"}
	default:
		return hosts[host]
	}
}

// isOpenWeights reports whether a model of OpenAI is sold only by other providers, at their own prices.
func isOpenWeights(model string) bool { return strings.HasPrefix(strings.ToLower(model), "gpt-oss-") }

// Of returns the prices of a Model: its own, those of the override in force, or those of the catalog. An
// error begins with the path of the field.
func Of(m v1alpha1.ModelSpec) (Known, error) {
	if m.Prices != nil {
		prices, err := ForRunner(m.Prices)
		return Known{Prices: prices, Source: v1alpha1.PricesOfModel}, err
	}
	if now := current.Load(); now != nil {
		if prices := now.override.find(m); prices != nil {
			return Known{prices, v1alpha1.PricesOfCatalog, &now.override.list}, nil
		}
	}
	listed, err := builtin()
	if err != nil {
		return Known{Source: v1alpha1.PricesUnknown}, err
	}
	for _, seller := range Sellers(m) {
		if row, found := find(listed.rows[seller], m.ModelID); found && !isOpenWeights(m.ModelID) {
			return Known{&row.Prices, v1alpha1.PricesOfCatalog, &v1alpha1.PriceList{Source: cmp.Or(row.Source, listed.Source), Date: cmp.Or(row.Date, listed.Date)}}, nil
		}
	}
	return Known{Source: v1alpha1.PricesUnknown}, nil
}

// Names returns the models of the catalog at the endpoint of a Model, and the list. The list is nil
// if the endpoint is not the one of a single provider of the catalog.
func Names(m v1alpha1.ModelSpec) ([]string, *v1alpha1.PriceList) {
	sellers := Sellers(m)
	listed, err := builtin()
	if err != nil || len(sellers) != 1 {
		return nil, nil
	}
	var names []string
	for _, row := range listed.rows[sellers[0]] {
		names = append(names, row.Model)
	}
	return names, &v1alpha1.PriceList{Source: listed.Source, Date: listed.Date}
}

var errOrder = errors.New("not above the tier before")

// ForRunner returns prices in the form for the runner. An error begins with the path of the field, and describes what
// to write.
func ForRunner(p *v1alpha1.Prices) (*task.Prices, error) {
	tier, err := forRunner("", v1alpha1.PriceTier{Input: p.Input, Output: p.Output, CacheRead: p.CacheRead, CacheWrite: p.CacheWrite})
	if err != nil {
		return nil, err
	}
	out := &task.Prices{Input: tier.Input, Output: tier.Output, CacheRead: tier.CacheRead, CacheWrite: tier.CacheWrite}
	last := int64(0)
	for i, t := range p.Tiers {
		path := fmt.Sprintf("tiers[%d].", i)
		above, err := t.Above.Count()
		if err != nil {
			return nil, fmt.Errorf("%sabove: %w", path, err)
		}
		if above <= last {
			return nil, fmt.Errorf("%sabove is %s: %w. Write more than %d, in ascending order, or remove the tier", path, t.Above, errOrder, last)
		}
		if tier, err = forRunner(path, t); err != nil {
			return nil, err
		}
		last, tier.Above = above, above
		out.Tiers = append(out.Tiers, tier)
	}
	return out, nil
}

// forRunner converts the four prices of a tier.
func forRunner(path string, t v1alpha1.PriceTier) (task.PriceTier, error) {
	read, write := t.Input, t.Input
	if t.CacheRead != nil {
		read = *t.CacheRead
	}
	if t.CacheWrite != nil {
		write = *t.CacheWrite
	}
	var out task.PriceTier
	for _, f := range []struct {
		name string
		from v1alpha1.Money
		to   *int64
	}{{"input", t.Input, &out.Input}, {"output", t.Output, &out.Output}, {"cacheRead", read, &out.CacheRead}, {"cacheWrite", write, &out.CacheWrite}} {
		micro, err := f.from.MicroUSD()
		if err != nil {
			return out, fmt.Errorf("%s%s: %w. Write an amount per million tokens, for example 3USD", path, f.name, err)
		}
		*f.to = micro
	}
	return out, nil
}

// Dearest returns prices without tiers and changes, each the highest that a request could have. A custom runner built
// with an older library refuses a task with tiers or changes.
func Dearest(p *task.Prices) *task.Prices {
	if p == nil || len(p.Tiers)+len(p.Changes) == 0 {
		return p
	}
	tiers := slices.Clone(p.Tiers)
	for _, c := range p.Changes {
		tiers = append(tiers, task.PriceTier{Input: c.Input, Output: c.Output, CacheRead: c.CacheRead, CacheWrite: c.CacheWrite})
		tiers = append(tiers, c.Tiers...)
	}
	out := task.Prices{Input: p.Input, Output: p.Output, CacheRead: p.CacheRead, CacheWrite: p.CacheWrite}
	for _, t := range tiers {
		out.Input, out.Output = max(out.Input, t.Input), max(out.Output, t.Output)
		out.CacheRead, out.CacheWrite = max(out.CacheRead, t.CacheRead), max(out.CacheWrite, t.CacheWrite)
	}
	return &out
}
