package snapshot

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/listprices"
	"github.com/deckhand-dev/deckhand/internal/shared/template"
)

// basePaths are the paths of the APIs of OpenAI at hosts that serve them, as the pages of these
// providers show them. docs/models.md names the addresses.
var basePaths = map[string]string{
	"api.openai.com":                    "/v1",
	"api.mistral.ai":                    "/v1",
	"api.x.ai":                          "/v1",
	"api.groq.com":                      "/openai/v1",
	"generativelanguage.googleapis.com": "/v1beta/openai",
	"openrouter.ai":                     "/api/v1",
}

// openAIFormats are the providers whose endpoint has the path of an API of OpenAI.
var openAIFormats = []v1alpha1.Provider{v1alpha1.ProviderOpenAI, v1alpha1.ProviderOpenAICompatible, v1alpha1.ProviderOpenRouter}

// pathOfCall matches the path of one call of an API, which a Model's client adds to the endpoint.
var pathOfCall = regexp.MustCompile(`(/openai/deployments/[^/]+)?/(chat/completions|completions|responses|messages)$`)

// endpointWarnings returns what is likely wrong in the endpoint of a Model: it is the address of one
// call, or a provider that is known serves its API at another path.
func endpointWarnings(spec v1alpha1.ModelSpec) []string {
	u, err := url.Parse(spec.Endpoint)
	if err != nil || spec.Endpoint == "" || spec.Provider == v1alpha1.ProviderCustom {
		return nil
	}
	path := strings.TrimRight(u.Path, "/")
	base := pathOfCall.ReplaceAllString(path, "")
	if known, is := basePaths[strings.ToLower(u.Hostname())]; is && slices.Contains(openAIFormats, spec.Provider) {
		base = known
	}
	if base == path {
		return nil
	}
	instead := url.URL{Scheme: u.Scheme, Host: u.Host, Path: base}
	why := "is the address of one call, whose path is added to the endpoint"
	if !pathOfCall.MatchString(path) {
		why = "is not where this provider has its API"
	}
	return []string{fmt.Sprintf("spec.endpoint: %s %s: write %s", (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String(), why, instead.String())}
}

// modelIDWarnings returns that the list of a provider lacks a model with this name, and has one with
// a similar name with the same numbers: other numbers are those of a model that is newer than the list.
func modelIDWarnings(spec v1alpha1.ModelSpec) []string {
	names, list := listprices.Names(spec)
	spec.Prices = nil
	if known, err := listprices.Of(spec); list == nil || err != nil || known.Prices != nil {
		return nil
	}
	names = slices.DeleteFunc(names, func(n string) bool { return digits(n) != digits(spec.ModelID) })
	similar := template.Similar(spec.ModelID, names)
	if similar == "" {
		return nil
	}
	return []string{fmt.Sprintf("spec.modelID: %s is not in the list of models of %s%s", spec.ModelID, list.Date, similar)}
}

// digits returns the version in the name of a model.
func digits(name string) string {
	return strings.Map(func(r rune) rune {
		if r < '0' || '9' < r {
			return -1
		}
		return r
	}, name)
}
