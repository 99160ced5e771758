// Package modelend says how a Run ends after an error of its model: the reason, and what to change.
package modelend

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/internal/model/source"
	"github.com/deckhand-dev/deckhand/runner/internal/place"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/facts"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// An Agent is the agent whose model failed.
type Agent struct {
	Name string
	// Place is where the agent works.
	Place place.Place
	// Tools are its tools; nil: it has none.
	Tools interface {
		Find(name string) (tool.Tool, bool)
		Specs() []step.Tool
	}
}

// maxQuoted bounds how much of a provider's message is quoted, in bytes: the advice after it must also fit into
// task.MaxMessage.
const maxQuoted = 480

// Of returns the error that ends the session of an agent after an error of its model. The credential of the model is
// described for users.
func Of(name, credential string, a Agent, err error) *task.EndError {
	if from, ok := errors.AsType[*source.Error](err); ok {
		name, credential, err = from.Model, from.Credential, from.Err
	}
	r := refusal{name, a}
	advice := r.credential(credential, err)
	var (
		unreadable   *model.NoCredentialError
		unauthorized *model.UnauthorizedError
		badRequest   *model.BadRequestError
		certificate  *model.CertificateError
		notAModel    *model.NotAModelError
		unreachable  *model.AddressError
		refused      *model.RefusedError
		brokenOff    *model.BrokenOffError
		timeout      *model.TimeoutError
		limited      *model.RateLimitedError
	)
	switch {
	case errors.As(err, &brokenOff) && brokenOff.Unusable:
		return task.End(task.ReasonInvalidOutput, "Model %s: %w, in every try. Simplify the tools and their schemas, or use another Model", name, err)
	case errors.As(err, &timeout):
		return task.End(task.ReasonModelUnavailable, "Model %s: %w. %s", name, err, r.timeout(timeout.Field))
	case errors.As(err, &refused):
		return task.End(task.ReasonRejected, "Model %s: %w. Change what the Run is given, or the provider's content policy", name, err)
	case errors.As(err, &limited) && limited.UsedUp:
		return task.End(task.ReasonModelUnavailable, "Model %s: %w. %s", name, err, r.advice(model.Refusal{Cause: model.CausePayment}))
	case errors.As(err, &unreadable):
		return task.End(task.ReasonModelUnavailable, "Model %s: %w; %s", name, err, advice)
	case errors.As(err, &unauthorized):
		return task.End(task.ReasonMisconfigured, "Model %s: %w; %s", name, err, advice)
	case errors.As(err, &notAModel):
		return task.End(task.ReasonMisconfigured, "Model %s: %w", name, err)
	case errors.As(err, &unreachable):
		return task.End(task.ReasonMisconfigured, "Model %s: %w. Correct %s, or the DNS record of its host", name, err, a.Place.TheModel("endpoint"))
	case errors.As(err, &certificate):
		return task.End(task.ReasonMisconfigured, "Model %s: %w. %s", name, err, r.certificate(certificate))
	case errors.As(err, &badRequest):
		quoted := *badRequest
		quoted.Message = strings.TrimSuffix(task.Cut(badRequest.Message, maxQuoted-len(badRequest.Asked)), ".")
		return task.End(task.ReasonMisconfigured, "Model %s: %w. %s", name, &quoted, r.advice(badRequest.Refusal))
	}
	return task.End(task.ReasonModelUnavailable, "Model %s: %w; if this does not pass, check the Model's endpoint", name, err)
}

// A refusal writes the advice about a request that a Model did not answer.
type refusal struct {
	model string
	agent Agent
}

// inProgram reports whether the agent works in a Go program, where there are no objects to change.
func (r refusal) inProgram() bool { return r.agent.Place == place.Program }

// field returns the name of a field of the Model, as users find it.
func (r refusal) field(name string) string { return r.agent.Place.Model(name, r.model) }

// ofAgent returns the name of a field of the Agent, as users find it.
func (r refusal) ofAgent(name string) string { return r.agent.Place.Agent(name, r.agent.Name) }

// orOfAgent names the Agent as a second place where a setting of the Model may be.
func (r refusal) orOfAgent() string {
	if r.inProgram() {
		return ""
	}
	return fmt.Sprintf(", or of Agent %s if it is set there", r.agent.Name)
}

// credential returns what to do about a credential that was refused or cannot be read.
func (r refusal) credential(from string, err error) string {
	unauthorized, isRefused := errors.AsType[*model.UnauthorizedError](err)
	switch {
	case from == "":
		return "set " + r.field("apiKeySecretRef")
	case !isRefused || !hasExpired(strings.ToLower(unauthorized.Message)):
		return "check " + from
	case r.inProgram():
		return "create a new key at the provider, and return it from " + from
	}
	return "create a new key at the provider, and write it into " + from
}

// hasExpired reports whether a message in lower case says that a key has expired.
func hasExpired(message string) bool {
	return strings.Contains(message, "expired") && (strings.Contains(message, "token") || strings.Contains(message, "key"))
}

// timeout returns what to do about a TimeoutError.
func (r refusal) timeout(field string) string {
	if field == "" {
		return "Check the server at the Model's endpoint"
	}
	return fmt.Sprintf("Set %s to a longer time if the model needs it; otherwise check the server at its endpoint", r.field("timeouts."+field))
}

// advice returns what to change.
func (r refusal) advice(f model.Refusal) string {
	switch f.Cause {
	case model.CauseTool:
		return r.tool(f.Tool)
	case model.CauseTooManyTools:
		return r.tooMany(f.Limit)
	case model.CauseParameter:
		return r.parameter(f)
	case model.CauseOutputLimit:
		where := r.field(setting(f))
		if or := r.orOfAgent(); or != "" {
			where += or + ","
		}
		return fmt.Sprintf("The answer may be shorter than is asked for. Set %s to at most %d", where, f.Limit)
	default:
		return r.general(f.Cause)
	}
}

// general returns the advice for a cause that needs only the names of Model and Agent.
func (r refusal) general(cause model.Cause) string {
	text := cmp.Or(advices[cause], "Check the Model's endpoint, modelID and inference")
	if r.inProgram() {
		text = cmp.Or(programAdvices[cause], text)
	}
	return fieldName.ReplaceAllStringFunc(text, func(token string) string {
		name := strings.Trim(token, "{}")
		if name == "agent" {
			return r.agent.Name
		}
		if short, ok := strings.CutPrefix(name, "spec."); ok {
			return r.agent.Place.Field(short)
		}
		return r.field(name)
	})
}

// fieldName matches a placeholder in an advice: {modelID} is a field with its Model, {spec.modelID} the field alone,
// {agent} the name of the Agent.
var fieldName = regexp.MustCompile(`\{[a-zA-Z.]+\}`)

// advices has the advice for each cause that needs only the name of the Model.
var advices = map[model.Cause]string{
	model.CauseNoTools: "This model, or its server, takes no tools. Set {modelID} to a model with tool calls, " +
		"or turn on tool calls in the server, for example with --jinja in llama.cpp or --enable-auto-tool-choice in vLLM",
	model.CauseToolsWithReasoning: "This model takes tools together with reasoning only over another API, or not at all. Set {api} to Responses " +
		"if the server has that API, or {inference.reasoning} to \"Off\", and remove spec.inference.reasoning of Agent {agent}",
	model.CauseOtherAPI: "The server has this model only over another API. Set {api} to Responses or ChatCompletions, whichever it names, or {spec.modelID} to another model",
	model.CauseRoles: "The provider, or the chat template of its server, does not take this order of messages. " +
		"Use another chat template in the server, or another model in {modelID}",
	model.CauseReasoningMissing: "The provider requires the reasoning of earlier answers. " +
		"Set {requestRepair} to Enabled, or {spec.inference.reasoning} to \"Off\"",
	model.CausePayment:    "The account has no credit. Add credit or change the billing at the provider, or set {apiKeySecretRef} to a key of another account",
	model.CauseModel:      "The model or the path is not known. Check {modelID}, and that {spec.endpoint} has the path that the API requires, for example /v1",
	model.CauseDeployment: "Azure has no deployment of this name. Set {azure.deployment} to the name of one, or create it; check {endpoint} too",
	model.CauseInferenceProfile: "This model is served only through an inference profile. Set {modelID} to the ID or ARN of one, " +
		"for example us., eu. or global. before this modelID",
	model.CausePage: "A proxy or another web server answered, not the model. Check {endpoint}, " +
		"and spec.podTemplate.proxy of Agent {agent} or the chart value runner.proxy",
	model.CauseServer: "The server is not configured for such requests, and a retry would not change that. Change its configuration, or {endpoint}",
}

// programAdvices replace advices that name objects, which a Go program does not have.
var programAdvices = map[model.Cause]string{
	"": "Check Endpoint, Model and Params of Agent.Model",
	model.CauseToolsWithReasoning: "This model takes tools together with reasoning only over another API, or not at all. Set {api} to Responses " +
		"if the server has that API, or {inference.reasoning} to Off",
	model.CauseReasoningMissing: "The provider requires the reasoning of earlier answers. Leave {requestRepair} empty, or set {inference.reasoning} to Off",
	model.CausePayment:          "The account has no credit. Add credit or change the billing at the provider, or return a key of another account from {apiKeySecretRef}",
	model.CausePage:             "A proxy or another web server answered, not the model. Check {endpoint}, and the environment variables HTTPS_PROXY, HTTP_PROXY and NO_PROXY",
}

// setting returns the field of a Model that a refused field comes from.
func setting(f model.Refusal) string {
	if f.Setting == "" {
		return "inference.maxOutputTokens"
	}
	return f.Setting
}

func (r refusal) parameter(f model.Refusal) string {
	if f.Setting == "" {
		repair := "Set " + r.field("requestRepair") + " to Enabled"
		if r.inProgram() {
			repair = "Leave " + r.field("requestRepair") + " empty"
		}
		return fmt.Sprintf("Deckhand sends %s by itself. %s, or remove the field with %s: {%q: null}", f.Field, repair, r.field("inference.extra"), f.Field)
	}
	return fmt.Sprintf("The field %s is refused. Change or remove %s%s", f.Field, r.field(f.Setting), r.orOfAgent())
}

// tool returns advice about which tool to leave out.
func (r refusal) tool(name string) string {
	switch {
	case name == "" && r.inProgram():
		return "The schema of a tool is refused; the message does not name it. Leave out entries of Agent.Tools to find it: " + r.tools()
	case name == "":
		return "The schema of a tool is refused; the message does not name it. Find it with deny in " + r.ofAgent("tools") + ": " + r.tools()
	}
	from := r.origin(name)
	if from.Toolset == "" {
		return fmt.Sprintf("The tool %s is refused. Remove it from %s, or correct its schema", name, r.ofAgent("tools"))
	}
	return fmt.Sprintf("The tool %s of Toolset %s is refused. Add it to deny of the entry toolset: %s in %s, or correct its schema in the server",
		from.Tool, from.Toolset, from.Toolset, r.ofAgent("tools"))
}

func (r refusal) tooMany(limit int64) string {
	most := "fewer"
	if limit > 0 {
		most = fmt.Sprintf("at most %d", limit)
	}
	if r.inProgram() {
		return fmt.Sprintf("The provider takes %s tools. %s. List fewer in Agent.Tools", most, r.tools())
	}
	return fmt.Sprintf("The provider takes %s tools. %s. List the tools that the Agent needs in allow, or the tools that it does not need in deny, in %s",
		most, r.tools(), r.ofAgent("tools"))
}

// origin returns the Toolset that a tool comes from, and its name there.
func (r refusal) origin(name string) facts.Origin {
	if r.agent.Tools == nil {
		return facts.Origin{}
	}
	t, ok := r.agent.Tools.Find(name)
	if !ok {
		return facts.Origin{}
	}
	return t.Internal.Facts().Origin
}

// tools describes how many tools the agent has, and where they come from.
func (r refusal) tools() string {
	if r.agent.Tools == nil {
		return "The Agent has no tools"
	}
	specs := r.agent.Tools.Specs()
	counts := map[string]int{}
	for _, s := range specs {
		counts[r.origin(s.Name).Toolset]++
	}
	var parts []string
	for _, toolset := range slices.Sorted(maps.Keys(counts)) {
		if toolset != "" {
			parts = append(parts, fmt.Sprintf("%d of Toolset %s", counts[toolset], toolset))
		}
	}
	if n := counts[""]; n > 0 {
		parts = append(parts, fmt.Sprintf("%d others", n))
	}
	return fmt.Sprintf("The request has %d tools: %s", len(specs), strings.Join(parts, ", "))
}

// certificate returns what to change if the certificate of an endpoint cannot be verified.
func (r refusal) certificate(err *model.CertificateError) string {
	switch {
	case err.Unknown && r.inProgram():
		return "Add the certificate of its CA to the trusted certificates of this machine, or name its file in the environment variable SSL_CERT_FILE"
	case err.Unknown:
		return "Put the certificate of its CA into a ConfigMap, and name that in " + r.ofAgent("podTemplate.caBundleConfigMapRef") +
			" or in the chart value runner.caBundleConfigMapRef"
	}
	return "Check the host in " + r.field("endpoint") + ", and the names in the certificate of the server"
}
