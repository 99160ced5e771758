package snapshot

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/inputs"
	"github.com/deckhand-dev/deckhand/internal/revision/listprices"
	"github.com/deckhand-dev/deckhand/internal/shared/modelfacts"
	"github.com/deckhand-dev/deckhand/internal/shared/template"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// toolsetNames returns the Toolsets that Agents of one pod name, each once, in order.
func toolsetNames(agent *v1alpha1.Agent, others []*v1alpha1.Agent) []string {
	var out []string
	for _, a := range append([]*v1alpha1.Agent{agent}, others...) {
		out = append(out, ToolsetsOf(a.Spec)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func toolsetForRunner(t *v1alpha1.Toolset) (task.Toolset, error) {
	spec := t.Spec
	out := task.Toolset{
		Name:           t.Name,
		ReadOnly:       spec.ReadOnly,
		Idempotent:     spec.Idempotent,
		TrustHints:     spec.TrustHints,
		TimeoutSeconds: seconds(spec.Timeout),
		Optional:       spec.Required != nil && !*spec.Required,
		Resources:      slices.Contains(spec.Offer, v1alpha1.OfferResources),
		Prompts:        slices.Contains(spec.Offer, v1alpha1.OfferPrompts),
		NoTools:        len(spec.Offer) > 0 && !slices.Contains(spec.Offer, v1alpha1.OfferTools),
		Stdio:          stdioForRunner(spec.Stdio),
	}
	if h := spec.HTTP; h != nil {
		out.HTTP = &task.HTTPServer{URL: h.URL, Headers: headersForRunner(h.Headers), Auth: authForRunner(h.Auth)}
	}
	var err error
	out.Requests, err = requestsForRunner(spec.Requests)
	if err != nil {
		return out, fmt.Errorf("Toolset %q: %w", t.Name, err) //nolint:staticcheck // kinds are written so
	}
	return out, nil
}

func stdioForRunner(s *v1alpha1.StdioServer) *task.StdioServer {
	if s == nil {
		return nil
	}
	out := &task.StdioServer{Command: s.Command, InSandbox: s.RunIn == v1alpha1.RunInSandbox}
	for _, e := range s.Env {
		if e.Value == nil || !out.InSandbox {
			continue // the container has it itself
		}
		if out.Env == nil {
			out.Env = map[string]string{}
		}
		out.Env[e.Name] = *e.Value
	}
	return out
}

func authForRunner(a *v1alpha1.Auth) *task.Auth {
	if a == nil {
		return nil
	}
	switch {
	case a.Bearer != nil:
		ref := a.Bearer.TokenSecretRef
		return &task.Auth{Type: task.AuthBearer, Secret: string(ref.Name), Key: ref.Key}
	case a.Header != nil:
		ref := a.Header.ValueSecretRef
		return &task.Auth{Type: task.AuthHeader, Header: a.Header.Name, Secret: string(ref.Name), Key: ref.Key}
	case a.Basic != nil:
		return &task.Auth{Type: task.AuthBasic, Secret: string(a.Basic.SecretRef.Name)}
	case a.OAuthClientCredentials != nil:
		o := a.OAuthClientCredentials
		return &task.Auth{Type: task.AuthOAuth, Secret: string(o.SecretRef.Name), TokenURL: o.TokenURL, Scopes: o.Scopes}
	}
	return nil
}

func requestsForRunner(r *v1alpha1.Requests) (*task.Requests, error) {
	if r == nil {
		return nil, nil //nolint:nilnil // no requests is a fact, not a fault
	}
	out := &task.Requests{BaseURL: strings.TrimSuffix(r.BaseURL, "/"), Headers: headersForRunner(r.Headers), Auth: authForRunner(r.Auth)}
	for i, t := range r.Tools {
		one := task.RequestTool{Name: t.Name, Description: t.Description, Method: t.Method, Path: t.Path, Query: t.Query}
		if t.Body != nil {
			var err error
			if one.Body, err = compact(t.Body.Raw); err != nil {
				return nil, fmt.Errorf("compacting body of %s: %w", t.Name, err)
			}
		}
		if t.Input != nil {
			if err := inputs.Check(fmt.Sprintf("spec.requests.tools[%d].input", i), t.Input); err != nil {
				return nil, err
			}
			one.Input = inputs.Schema(t.Input)
		}
		out.Tools = append(out.Tools, one)
	}
	return out, nil
}

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

// endpointWarnings returns likely mistakes in the endpoint of a Model: it is the address of one operation, or a known
// provider serves its API at another path.
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

// ModelIDWarnings warns of a name that the endpoint of a Model likely does not know. No name is refused: it may be newer.
func ModelIDWarnings(spec v1alpha1.ModelSpec) []string {
	return append(otherMakerWarnings(spec), similarIDWarnings(spec)...)
}

// makers are the companies whose endpoints serve only their own models, as modelfacts and listprices name them.
var makers = map[string]string{"openai": "OpenAI", "anthropic": "Anthropic", "deepseek": "DeepSeek", "moonshotai": "Kimi"}

// otherMakerWarnings warns that the endpoint is of one maker, and the model of another.
func otherMakerWarnings(spec v1alpha1.ModelSpec) []string {
	sellers, maker := listprices.Sellers(spec), modelfacts.MakerOf(spec.ModelID)
	if len(sellers) != 1 || maker == sellers[0] || makers[maker] == "" || makers[sellers[0]] == "" {
		return nil
	}
	if maker == "anthropic" && (spec.API == v1alpha1.APIMessages || spec.Provider == v1alpha1.ProviderAnthropicCompatible) {
		return nil // endpoints of others take the names of Claude over this API, and answer with a model of their own
	}
	return []string{fmt.Sprintf("spec.modelID: %s is a model of %s, and the endpoint of this Model is of %s: correct modelID, provider or endpoint", spec.ModelID, makers[maker], makers[sellers[0]])}
}

// similarIDWarnings warns that the list of a provider lacks a model of this name, and has one of a similar name with the
// same numbers. Other numbers mean that the model is newer than the list.
func similarIDWarnings(spec v1alpha1.ModelSpec) []string {
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
