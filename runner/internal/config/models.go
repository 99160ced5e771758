package config

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/internal/shared/turnroute"
	"github.com/deckhand-dev/deckhand/runner/internal/engine"
	"github.com/deckhand-dev/deckhand/runner/internal/model/catalog"
	"github.com/deckhand-dev/deckhand/runner/internal/model/price"
	"github.com/deckhand-dev/deckhand/runner/internal/model/retry"
	"github.com/deckhand-dev/deckhand/runner/internal/model/router"
	"github.com/deckhand-dev/deckhand/runner/internal/place"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/anthropic"
	"github.com/deckhand-dev/deckhand/runner/model/openai"
	"github.com/deckhand-dev/deckhand/runner/model/provider"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// providerCustom is the provider whose Models name a driver.
const providerCustom = "Custom"

// models are the Models of a snapshot, each made once, and their routers. Sessions share both, so that what one session
// learns about a Model applies to all.
type models struct {
	specs   map[string]task.Model
	targets map[string]router.Target

	mu      sync.Mutex // sessions begin side by side
	routers map[string]engine.Model
}

// makeModels makes the Models of a snapshot.
func (r *Registry) makeModels(ctx context.Context, p Parts, o *opened) (*models, error) {
	m := &models{specs: map[string]task.Model{}, targets: map[string]router.Target{}, routers: map[string]engine.Model{}}
	for _, spec := range p.Snapshot.Models {
		target, err := r.target(ctx, p, withAPI(spec, p.Snapshot), o)
		if err != nil {
			return nil, err
		}
		m.specs[spec.Name], m.targets[spec.Name] = spec, target
	}
	return m, nil
}

// target makes one Model with its layers: price, retries, and its bounds.
func (r *Registry) target(ctx context.Context, p Parts, spec task.Model, o *opened) (router.Target, error) {
	if p.Task.Limits.CostMicroUSD > 0 && spec.Prices == nil {
		return router.Target{}, misconfigured("Model %s has no prices, so %s cannot be held; set %s", spec.Name, p.Place.Limit("cost"), p.Place.TheModel("prices"))
	}
	factory, err := r.driver(spec)
	if err != nil {
		return router.Target{}, err
	}
	driven, err := call(ctx, factory, registry.ModelSpec{Model: spec, Key: p.key(spec.SecretKey)})
	if err != nil {
		return router.Target{}, misconfigured("Model %s: %w", spec.Name, err)
	}
	o.add("the model "+spec.Name, driven)
	window, maxOutput := catalog.Of(spec.Model)
	t := router.Target{
		Name: spec.Name, Params: spec.Params, Credential: credential(p.Place, spec.SecretKey),
		Takes:     catalog.Takes(spec.Model),
		Model:     retry.New(price.New(driven, spec.Prices, p.Now), retry.Options{}),
		Window:    cmp.Or(spec.ContextWindow, window),
		MaxOutput: cmp.Or(spec.Params.MaxOutputTokens, spec.MaxOutputTokens, maxOutput),
	}
	t.MaxOutput = min(t.MaxOutput, t.Window/2)
	return t, nil
}

// driver returns the factory for a Model.
func (r *Registry) driver(spec task.Model) (registry.ModelFactory, error) {
	if spec.Provider == providerCustom {
		if f, ok := r.drivers[spec.Driver]; ok {
			return f, nil
		}
		return nil, misconfigured("Model %s: this runner has no driver %q; it has %s; set podTemplate.runnerImage of the Agent to a runner that was built with it",
			spec.Name, spec.Driver, cmp.Or(names(r.drivers), "none"))
	}
	if f, ok := providers[spec.Provider]; ok {
		return f, nil
	}
	return nil, misconfigured("Model %s: this runner has no provider %q; it has %s", spec.Name, spec.Provider, names(providers))
}

func credential(at place.Place, k task.SecretKey) string {
	if k.Secret == "" {
		return ""
	}
	return at.Key(k)
}

// route returns a Model with its fallbacks. The agent's parameters override those of each Model.
func (m *models) route(agent task.Agent, names []string) (engine.Model, error) {
	id := agent.Name + "\x00" + strings.Join(names, "\x00")
	m.mu.Lock()
	defer m.mu.Unlock()
	if made, ok := m.routers[id]; ok {
		return made, nil
	}
	var targets []router.Target
	for _, name := range names {
		t, ok := m.targets[name]
		if !ok {
			return engine.Model{}, misconfigured("Agent %s: its Model %q is not among those of the Run", agent.Name, name)
		}
		if most := agent.Params.MaxOutputTokens; most > 0 {
			t.MaxOutput = most
		}
		targets = append(targets, t)
	}
	r := router.New(targets, nil)
	made := engine.Model{
		Model: r, Name: targets[0].Name, Params: agent.Params, Credential: targets[0].Credential,
		Next: r.Next, Price: m.price,
	}
	m.routers[id] = made
	return made, nil
}

// price prices usage that the loop estimated itself, with the prices at the time of the request.
func (m *models) price(name string, u step.Usage, at time.Time) step.Usage {
	if p := m.specs[name].Prices; p != nil {
		return price.Of(u, price.At(*p, at))
	}
	return u
}

// modelsOf returns the Models of an agent: its own, or the first of the snapshot.
func modelsOf(s task.Snapshot, agent task.Agent) []string {
	if len(agent.Models) > 0 {
		return agent.Models
	}
	return []string{s.Models[0].Name}
}

var _ model.Model = (*router.Router)(nil)

// formatAnthropic is the format of a Model whose provider has both APIs.
const formatAnthropic = "Anthropic"

// providers make the models of the built-in providers. AGENTS.md says how to add one.
var providers = map[string]registry.ModelFactory{
	openai.ProviderOpenAI:                 newOpenAI,
	openai.ProviderOpenAICompatible:       newOpenAI,
	openai.ProviderAzure:                  newOpenAI,
	openai.ProviderOpenRouter:             newOpenAI,
	openai.ProviderOllama:                 newOpenAI,
	openai.ProviderDeepSeek:               newByFormat,
	openai.ProviderKimi:                   newByFormat,
	anthropic.ProviderAnthropic:           newAnthropic,
	anthropic.ProviderAnthropicCompatible: newAnthropic,
	anthropic.ProviderBedrock:             newAnthropic,
}

// newByFormat makes the model of a provider that has the APIs of both packages.
func newByFormat(ctx context.Context, s registry.ModelSpec) (model.Model, error) {
	if s.API == provider.APIMessages || s.API == "" && s.Format == formatAnthropic {
		return newAnthropic(ctx, s)
	}
	return newOpenAI(ctx, s)
}

func newOpenAI(_ context.Context, s registry.ModelSpec) (model.Model, error) {
	return openai.New(openai.Options{
		Provider: s.Provider, API: apiOf(s.Model), Name: s.Name, Model: s.Model.Model,
		Endpoint: s.Endpoint, Headers: s.Headers, Key: s.Key, NoRepair: s.RequestRepair == task.RepairDisabled,
		Deployment: s.Deployment, APIVersion: s.APIVersion, Timeouts: provider.TimeoutsOf(s.Timeouts),
	})
}

// apiOf returns the API of a Model of OpenAI or Azure that sets none: Responses for OpenAI at its own endpoint, and for
// reasoning models at Azure. Models that already depend on chat completions keep that API: by an endpoint or a version
// of it, or by fields that are merged into its requests.
func apiOf(m task.Model) string {
	u, err := url.Parse(m.Endpoint)
	if m.API != "" || err != nil || m.APIVersion != "" || u.Query().Has("api-version") || len(m.Params.Extra) > 0 ||
		strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/chat/completions") || strings.Contains(u.Path, "/openai/deployments/") {
		return m.API
	}
	isOwn := m.Endpoint == "" || u.Hostname() == "api.openai.com" || strings.HasSuffix(u.Hostname(), ".api.openai.com") // of a region
	if m.Provider == openai.ProviderOpenAI && isOwn || m.Provider == openai.ProviderAzure && isReasoning(m.Model) {
		return provider.APIResponses
	}
	return ""
}

// withAPI returns a Model with the API that the agents of a Run use. If any of them merges fields into requests, that
// is chat completions, as for fields of the Model itself.
func withAPI(m task.Model, s task.Snapshot) task.Model {
	merges := func(a task.Agent) bool { return len(a.Params.Extra) > 0 }
	if m.API == "" && (m.Provider == openai.ProviderOpenAI || m.Provider == openai.ProviderAzure) && slices.ContainsFunc(append(slices.Clip(s.Agents), s.Agent), merges) {
		m.API = provider.APIChatCompletions
	}
	return m
}

// isReasoning reports, by its name, whether a model of OpenAI reasons.
func isReasoning(name string) bool {
	generation, isGPT := strings.CutPrefix(name, "gpt-")
	series, isO := strings.CutPrefix(name, "o")
	isDigit := func(s string, least byte) bool { return s != "" && s[0] >= least && s[0] <= '9' }
	return isGPT && isDigit(generation, '5') || isO && isDigit(series, '1') || strings.HasPrefix(name, "codex")
}

func newAnthropic(_ context.Context, s registry.ModelSpec) (model.Model, error) {
	return anthropic.New(anthropic.Options{
		Provider: s.Provider, API: s.API, Name: s.Name, Model: s.Model.Model,
		Endpoint: s.Endpoint, Headers: s.Headers, Key: s.Key, NoRepair: s.RequestRepair == task.RepairDisabled,
		Timeouts: provider.TimeoutsOf(s.Timeouts),
	})
}

// turnRoutes compiles the routes of an agent for turns. A session with fixed models has none.
func (b *builder) turnRoutes(agent task.Agent, c sessionOptions) ([]engine.Route, error) {
	if c.fixed {
		return nil, nil
	}
	var routes []engine.Route
	for _, r := range agent.TurnRoutes {
		m, err := b.models.route(agent, r.Models)
		if err != nil {
			return nil, err
		}
		route := engine.Route{Model: m, When: r.When}
		if r.When != "" {
			condition, err := turnroute.Compile(r.When)
			if err != nil {
				return nil, misconfigured("Agent %s: the route to Model %s: when: %w", agent.Name, m.Name, err)
			}
			route.Applies = applies(condition)
		}
		routes = append(routes, route)
	}
	return routes, nil
}

// applies returns a function that evaluates a condition for the engine.
func applies(c *turnroute.Condition) func(context.Context, engine.RouteTurn) (bool, error) {
	return func(ctx context.Context, t engine.RouteTurn) (bool, error) {
		return c.Holds(ctx, turnroute.Turn{Number: t.Number, EstimatedTokens: t.EstimatedTokens, Left: turnroute.Left(t.Left)})
	}
}
