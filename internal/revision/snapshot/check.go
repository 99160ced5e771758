package snapshot

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/inputs"
	"github.com/deckhand-dev/deckhand/internal/revision/listprices"
	"github.com/deckhand-dev/deckhand/internal/revision/specsize"
	"github.com/deckhand-dev/deckhand/internal/shared/inputtext"
	"github.com/deckhand-dev/deckhand/internal/shared/schema"
	"github.com/deckhand-dev/deckhand/internal/shared/template"
	"github.com/deckhand-dev/deckhand/internal/shared/turnroute"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool/request"
)

const maxExtra = 4 << 10

// CheckModel returns an error that the schema of a Model cannot find, as a *NotReadyError, or nil.
func CheckModel(m *v1alpha1.Model, models map[string]*v1alpha1.Model) *NotReadyError {
	if p := CheckKept(m); p != nil {
		return p
	}
	if p := checkReplaced(replacedInModel(m.Spec)); p != nil {
		return p
	}
	if p := checkInference(m.Spec.Inference); p != nil {
		return p
	}
	if m.Spec.Prices != nil {
		if _, err := listprices.ForRunner(m.Spec.Prices); err != nil {
			return &NotReadyError{v1alpha1.ReasonInvalid, fmt.Sprintf("spec.prices.%v", err)}
		}
	}
	for _, f := range m.Spec.Fallbacks {
		if models[string(f)] == nil {
			return &NotReadyError{v1alpha1.ReasonNotFound, fmt.Sprintf("Model %q not found in namespace %s; create it, or remove it from spec.fallbacks", f, m.Namespace)}
		}
	}
	if path := circle(m.Name, models); len(path) > 0 {
		return &NotReadyError{v1alpha1.ReasonCycle, fmt.Sprintf("The fallbacks are a cycle: %s; remove one of them", strings.Join(path, " -> "))}
	}
	return nil
}

// CheckKept checks that the operator has the spec of an object, which it does not keep if that is
// too large.
func CheckKept(o metav1.Object) *NotReadyError {
	if problem := specsize.Dropped(o); problem != "" {
		return &NotReadyError{v1alpha1.ReasonTooLarge, problem}
	}
	return nil
}

func checkInference(p *v1alpha1.Inference) *NotReadyError {
	if p == nil || p.Extra == nil {
		return nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(p.Extra.Raw, &object); err != nil {
		return &NotReadyError{v1alpha1.ReasonInvalid, "spec.inference.extra must be an object"}
	}
	if len(p.Extra.Raw) > maxExtra {
		return &NotReadyError{v1alpha1.ReasonInvalid, fmt.Sprintf("spec.inference.extra has %d bytes of JSON; at most %d are allowed", len(p.Extra.Raw), maxExtra)}
	}
	return nil
}

// Warnings returns likely mistakes in an Agent that is Ready: a reference in the instructions in the syntax of another
// tool, {{ x }} or $(params.x), rules of the policy that never decide or cannot be decided, inference that contradicts
// the documentation of its Models. It also finds limits that contradict each other, and a memory limit with which no
// runner starts.
func Warnings(a *v1alpha1.Agent, o Objects) []string {
	var out []string
	if w := template.ForeignWarning("spec.instructions", a.Spec.Instructions); w != "" {
		out = append(out, w)
	}
	if w := deadRules(a.Spec); w != "" {
		out = append(out, w)
	}
	out = append(append(out, idleRules(a, o)...), agentFactWarnings(a, o)...)
	return append(append(out, LimitWarnings("spec.limits", a.Spec.Limits.Limits)...), memoryWarnings(a.Spec.PodTemplate)...)
}

// check returns why an Agent, with all objects that it refers to, cannot run, or nil. It returns the other Agents that
// it can call in its pod, by name.
func check(agent *v1alpha1.Agent, o Objects) ([]*v1alpha1.Agent, *NotReadyError) {
	if p := checkOne(agent, o); p != nil {
		return nil, p
	}
	others, p := reachableAgents(agent, o)
	if p != nil {
		return nil, p
	}
	if len(others) > MaxAgents {
		return nil, &NotReadyError{v1alpha1.ReasonTooLarge, fmt.Sprintf("It may reach more than %d other Agents in its pod, itself or through others: %s and maybe more; remove some from spec.tools", MaxAgents, names(others))}
	}
	for _, a := range others {
		if p := checkOther(agent, a, o); p != nil {
			return nil, p
		}
	}
	if p := checkSandbox(agent, others, o); p != nil {
		return nil, p
	}
	if p := checkSameSkills(agent, others); p != nil {
		return nil, p
	}
	return others, checkPrices(agent, o)
}

// checkOther checks an Agent that works in the pod of another.
func checkOther(agent, other *v1alpha1.Agent, o Objects) *NotReadyError {
	if p := checkOne(other, o); p != nil {
		return notReady(other, p)
	}
	if p := checkPrices(other, o); p != nil {
		return notReady(other, p)
	}
	if p := checkImage(agent, other); p != nil {
		return p
	}
	return checkPlace(agent, other)
}

// checkImage checks that an Agent that works in the pod of another has the same runner image: its own image could bring
// tools and models that the pod lacks.
func checkImage(agent, other *v1alpha1.Agent) *NotReadyError {
	wanted := runnerImage(other.Spec)
	if wanted == "" || wanted == runnerImage(agent.Spec) {
		return nil
	}
	return &NotReadyError{v1alpha1.ReasonNotReady, fmt.Sprintf(
		"Agent %q has the runner image %s, but works in the pod of this Agent, which has another. Set spec.podTemplate.runnerImage of both to the same image", other.Name, wanted)}
}

func runnerImage(spec v1alpha1.AgentSpec) string {
	if spec.PodTemplate == nil {
		return ""
	}
	return spec.PodTemplate.RunnerImage
}

func notReady(a *v1alpha1.Agent, p *NotReadyError) *NotReadyError {
	return &NotReadyError{v1alpha1.ReasonNotReady, fmt.Sprintf("Agent %q is not ready: %s", a.Name, p.Message)}
}

func names(agents []*v1alpha1.Agent) string {
	var out []string
	for _, a := range agents {
		out = append(out, a.Name)
	}
	return strings.Join(out, ", ")
}

// checkOne checks an Agent by itself, with its Models.
func checkOne(agent *v1alpha1.Agent, o Objects) *NotReadyError {
	if p := CheckKept(agent); p != nil {
		return p
	}
	if p := checkReplaced(replacedInAgent(agent.Spec)); p != nil {
		return p
	}
	for i, name := range ModelsOf(agent.Spec) {
		if p := checkUse(agent, name, []string{"spec.model", "spec.routes"}[min(i, 1)], o); p != nil {
			return p
		}
	}
	if p := checkRoutes(agent.Spec.Routes); p != nil {
		return p
	}
	if p := checkInference(agent.Spec.Inference); p != nil {
		return p
	}
	if p := checkImages(agent.Spec); p != nil {
		return p
	}
	if p := checkInput(agent.Spec.Input); p != nil {
		return p
	}
	if p := checkOutput(agent.Spec.Output); p != nil {
		return p
	}
	var declared json.RawMessage
	if agent.Spec.Input != nil {
		declared = InputSchema(agent.Spec)
	}
	if err := CheckTemplate(agent.Spec.Instructions, agent.Name, declared); err != nil {
		return &NotReadyError{v1alpha1.ReasonInvalid, fmt.Sprintf("spec.instructions: %v", err)}
	}
	return checkCalls(agent, o)
}

// checkCalls checks which tools an Agent may call, and the rules for its calls.
func checkCalls(agent *v1alpha1.Agent, o Objects) *NotReadyError {
	if p := checkSkills(agent.Spec); p != nil {
		return p
	}
	if p := checkNames(agent.Spec.Tools); p != nil {
		return p
	}
	if p := checkToolsets(agent, o); p != nil {
		return p
	}
	if p := checkRunAgents(agent, o); p != nil {
		return p
	}
	if p := checkPolicy(agent, o); p != nil {
		return p
	}
	return checkHooks(agent.Spec)
}

// checkUse checks a Model that an Agent names, and its fallbacks.
func checkUse(agent *v1alpha1.Agent, model, field string, o Objects) *NotReadyError {
	if o.Models[model] == nil {
		return &NotReadyError{v1alpha1.ReasonNotFound, fmt.Sprintf("Model %q not found in namespace %s; create it, or name another in %s", model, agent.Namespace, field)}
	}
	for _, name := range chain(model, o) {
		m := o.Models[name]
		if m == nil {
			continue // its Model says so
		}
		if p := CheckModel(m, o.Models); p != nil {
			return &NotReadyError{v1alpha1.ReasonNotReady, fmt.Sprintf("Model %q is not ready: %s", m.Name, p.Message)}
		}
	}
	return nil
}

func checkInput(in *v1alpha1.Input) *NotReadyError {
	if err := inputs.Check("spec.input", in); err != nil {
		return &NotReadyError{v1alpha1.ReasonInvalid, err.Error()}
	}
	return nil
}

func checkOutput(out *v1alpha1.Output) *NotReadyError {
	if out == nil {
		return nil
	}
	if len(out.Schema.Raw) > 0 {
		if p := checkSchema(out.Schema, "spec.output.schema"); p != nil {
			return p
		}
	}
	for i, pattern := range out.Files {
		if !doublestar.ValidatePattern(pattern) {
			return &NotReadyError{v1alpha1.ReasonInvalid, fmt.Sprintf(`spec.output.files[%d]: %q is not a valid pattern: close each [ and {, or write \ before it`, i, pattern)}
		}
	}
	return nil
}

func checkSchema(s runtime.RawExtension, field string) *NotReadyError {
	if err := schema.Check(s.Raw); err != nil {
		return &NotReadyError{v1alpha1.ReasonInvalid, fmt.Sprintf("%s: %v", field, err)}
	}
	return nil
}

// checkPrices finds Models without prices if cost is limited: such a limit could not be enforced.
func checkPrices(agent *v1alpha1.Agent, o Objects) *NotReadyError {
	if agent.Spec.Limits.Cost == nil {
		return nil
	}
	others, p := reachableAgents(agent, o)
	if p != nil {
		return p
	}
	for _, a := range append([]*v1alpha1.Agent{agent}, others...) {
		if name := unpriced(a, o); name != "" {
			return &NotReadyError{v1alpha1.ReasonPricesMissing, fmt.Sprintf("limits.cost needs to know what Model %q costs. Set spec.prices of the Model, or remove limits.cost", name)}
		}
	}
	return nil
}

// unpriced returns the first Model without prices that an Agent uses, directly or as a fallback, or an empty name.
func unpriced(agent *v1alpha1.Agent, o Objects) string {
	for _, use := range ModelsOf(agent.Spec) {
		for _, name := range chain(use, o) {
			m := o.Models[name]
			if m == nil {
				continue
			}
			if known, _ := listprices.Of(m.Spec); known.Prices == nil {
				return name
			}
		}
	}
	return ""
}

// imageName is the grammar of image references that kubelets accept
// (https://pkg.go.dev/github.com/distribution/reference): a domain, a path in lower case, a tag and a
// digest.
var imageName = regexp.MustCompile(`^(?:(?:` + domainName + `|\[[a-fA-F0-9:]+\])(?::[0-9]+)?/)?` +
	pathPart + `(?:/` + pathPart + `)*` +
	`(?::\w[\w.-]{0,127})?` +
	`(?:@[A-Za-z][A-Za-z0-9]*(?:[+._-][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?$`)

const (
	domainLabel = `[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?`
	domainName  = domainLabel + `(?:\.` + domainLabel + `)*`
	pathPart    = `[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*`
)

// bareDigest is a name that registries take for the ID of an image.
var bareDigest = regexp.MustCompile(`^[a-f0-9]{64}$`)

// imageProblem returns why a text is not an image reference, and what to write; empty: it is one.
func imageProblem(image string) string {
	if imageName.MatchString(image) && !bareDigest.MatchString(image) {
		return ""
	}
	_, path, hasScheme := strings.Cut(image, "://")
	what := "write it as debian:stable-slim or registry.example/team/tools:1.2"
	switch {
	case hasScheme:
		what = fmt.Sprintf("leave out the scheme, as in %q", path)
	case strings.ContainsAny(image, " \t\r\n"):
		what = "it has a blank: write the tag behind a colon, as in debian:stable-slim"
	case !bareDigest.MatchString(image) && imageName.MatchString(strings.ToLower(image)):
		what = fmt.Sprintf("write the name in lower case, as in %q", strings.ToLower(image))
	}
	return fmt.Sprintf("%q is not an image name: %s", image, what)
}

// checkImages checks the images that an Agent names.
func checkImages(spec v1alpha1.AgentSpec) *NotReadyError {
	field, image := "spec.podTemplate.runnerImage", runnerImage(spec)
	if problem := imageProblem(image); image != "" && problem != "" {
		return &NotReadyError{v1alpha1.ReasonInvalid, field + ": " + problem}
	}
	if spec.Sandbox == nil || spec.Sandbox.Image == "" {
		return nil
	}
	if problem := imageProblem(spec.Sandbox.Image); problem != "" {
		return &NotReadyError{v1alpha1.ReasonInvalid, "spec.sandbox.image: " + problem}
	}
	return nil
}

// checkRoutes checks that each route for turns compiles and can be used.
func checkRoutes(routes []v1alpha1.Route) *NotReadyError {
	var conditions, paths []string
	for i, r := range routes {
		if r.For == v1alpha1.RouteTurn {
			conditions, paths = append(conditions, r.When), append(paths, fmt.Sprintf("spec.routes[%d]", i))
		}
	}
	wrong := turnroute.Check(conditions, func(route int) string { return paths[route] })
	if wrong == nil {
		return nil
	}
	path := paths[wrong.Route]
	if wrong.When {
		path += ".when"
	}
	return &NotReadyError{v1alpha1.ReasonInvalid, task.Cut(fmt.Sprintf("%s: %v", path, wrong), task.MaxMessage)}
}

// CheckToolset returns why a Toolset is not Ready, or nil. Only a Run can find out whether its server answers.
func CheckToolset(t *v1alpha1.Toolset) *NotReadyError {
	if p := CheckKept(t); p != nil {
		return p
	}
	if s := t.Spec.Stdio; s != nil && s.Container != nil {
		if problem := imageProblem(s.Container.Image); problem != "" {
			return &NotReadyError{v1alpha1.ReasonInvalid, "spec.stdio.container.image: " + problem}
		}
	}
	ts, err := toolsetForRunner(t)
	if err == nil && ts.Requests != nil {
		err = request.Check(ts)
	}
	if problem, is := errors.AsType[*request.InvalidError](err); is {
		return &NotReadyError{v1alpha1.ReasonInvalid, "spec." + problem.Error()}
	}
	if err != nil {
		return &NotReadyError{v1alpha1.ReasonInvalid, err.Error()}
	}
	return nil
}

// InputSchemaOf returns the schema of the input of an Agent in a Snapshot.
func InputSchemaOf(agent task.Agent) json.RawMessage {
	if len(agent.InputSchema) == 0 {
		return defaultInput
	}
	return agent.InputSchema
}

// CheckTemplate checks a text with expressions in ${{ }} against the input schema of an Agent. Without a schema the
// Agent declares no input and has only a prompt.
func CheckTemplate(text, agent string, input json.RawMessage) error {
	if len(input) > 0 {
		return inputtext.Check(text, input)
	}
	err := inputtext.Check(text, defaultInput)
	if err != nil && inputtext.Check(text, nil) == nil { // it reads what the Agent does not declare
		return fmt.Errorf("%w; %s", err, NoInput(agent))
	}
	return err
}

// NoInput returns the message that an Agent declares no input, with what to do.
func NoInput(agent string) string {
	return fmt.Sprintf("Agent %s declares no input: add spec.input to it", agent)
}
