package engine

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/internal/model/source"
	"github.com/deckhand-dev/deckhand/runner/internal/place"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/facts"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// toolsetBox returns 148 tools of a Toolset and 2 others.
func toolsetBox() enginetest.Toolbox {
	var box enginetest.Toolbox
	for i := range 150 {
		t := echo(fmt.Sprintf("odd__tool_%03d", i), tool.Once)
		if i < 148 {
			t.Internal = facts.Facts{Origin: facts.Origin{Toolset: "odd", Tool: fmt.Sprintf("tool.%03d", i)}}.Internal()
		}
		box = append(box, t)
	}
	return box
}

func TestModelEndNamesTheFieldsToCheck(t *testing.T) {
	unauthorized := &model.UnauthorizedError{Status: 401, Message: "no"}
	const refused = "Misconfigured: Model gpt: the model provider refused the request (HTTP 400): no. "
	because := func(r model.Refusal) error { return &model.BadRequestError{Status: 400, Message: "no.", Refusal: r} }
	only := func(c model.Cause) error { return because(model.Refusal{Cause: c}) }
	timeout := func(field string) error {
		return &model.IncompleteError{Cause: &model.TimeoutError{Field: field, After: 2 * time.Minute}}
	}
	gpt := Model{Name: "gpt"}
	cases := map[string]struct {
		model Model
		err   error
		want  string
	}{
		"a refused key": {Model{Name: "gpt", Credential: "the key k of the Secret s"}, unauthorized, "Misconfigured: Model gpt: " + unauthorized.Error() + "; check the key k of the Secret s"},
		"an expired key": {
			Model{Name: "gpt", Credential: "the key k of the Secret s"},
			&model.UnauthorizedError{Status: 403, Message: "Bearer Token has expired"},
			"Misconfigured: Model gpt: the model provider refused the credential (HTTP 403): Bearer Token has expired; create a new key at the provider, and write it into the key k of the Secret s",
		},
		"a model that needs an inference profile": {
			gpt, only(model.CauseInferenceProfile),
			refused + "This model is served only through an inference profile. Set spec.modelID of Model gpt to the ID or ARN of one, for example us., eu. or global. before this modelID",
		},
		"no key":                  {gpt, unauthorized, "Misconfigured: Model gpt: " + unauthorized.Error() + "; set spec.apiKeySecretRef of Model gpt"},
		"no key of a fallback":    {Model{Name: "gpt", Credential: "the key k of the Secret s"}, &source.Error{Model: "nokey", Err: unauthorized}, "Misconfigured: Model nokey: " + unauthorized.Error() + "; set spec.apiKeySecretRef of Model nokey"},
		"a used-up quota":         {gpt, &model.RateLimitedError{Final: true, UsedUp: true, Message: "no quota"}, "ModelUnavailable: Model gpt: the account at the model provider is used up: no quota. The account has no credit. Add credit or change the billing at the provider, or set spec.apiKeySecretRef of Model gpt to a key of another account"},
		"a missing deployment":    {gpt, &model.BadRequestError{Status: 404, Message: "no", Refusal: model.Refusal{Cause: model.CauseDeployment}}, "Misconfigured: Model gpt: the model provider refused the request (HTTP 404): no. Azure has no deployment of this name. Set spec.azure.deployment of Model gpt to the name of one, or create it; check spec.endpoint of Model gpt too"},
		"an unknown path":         {gpt, &model.BadRequestError{Status: 404, Message: "404 page not found", Asked: "POST https://h/chat/completions", Refusal: model.Refusal{Cause: model.CauseModel}}, "Misconfigured: Model gpt: the model provider refused the request POST https://h/chat/completions (HTTP 404): 404 page not found. The model or the path is not known. Check spec.modelID of Model gpt, and that spec.endpoint has the path that the API requires, for example /v1"},
		"an answer broken off":    {gpt, &model.BrokenOffError{Reason: "abort"}, "ModelUnavailable: Model gpt: the provider broke off the answer (finish reason abort); if this does not pass, check the Model's endpoint"},
		"a call it cannot read":   {gpt, &source.Error{Model: "two", Err: &model.BrokenOffError{Reason: "MALFORMED_FUNCTION_CALL", Unusable: true}}, "InvalidOutput: Model two: the provider could not use what the model wrote (finish reason MALFORMED_FUNCTION_CALL), in every try. Simplify the tools and their schemas, or use another Model"},
		"a silent server":         {gpt, timeout("firstByte"), "ModelUnavailable: Model gpt: no byte came for 2m0s before the answer began (timeouts.firstByte). Set spec.timeouts.firstByte of Model gpt to a longer time if the model needs it; otherwise check the server at its endpoint"},
		"a silent fallback":       {gpt, &source.Error{Model: "mini", Err: timeout("total")}, "ModelUnavailable: Model mini: the answer was not complete after 2m0s (timeouts.total). Set spec.timeouts.total of Model mini to a longer time if the model needs it; otherwise check the server at its endpoint"},
		"a stream without an end": {gpt, timeout(""), "ModelUnavailable: Model gpt: no byte came for 2m0s. Check the server at the Model's endpoint"},
		"an unknown cause":        {gpt, because(model.Refusal{}), refused + "Check the Model's endpoint, modelID and inference"},
		"a tool of a Toolset": {
			gpt, because(model.Refusal{Cause: model.CauseTool, Tool: "odd__tool_003"}),
			refused + "The tool tool.003 of Toolset odd is refused. Add it to deny of the entry toolset: odd in spec.tools of Agent a, or correct its schema in the server",
		},
		"a tool of another kind": {
			gpt, because(model.Refusal{Cause: model.CauseTool, Tool: "odd__tool_149"}),
			refused + "The tool odd__tool_149 is refused. Remove it from spec.tools of Agent a, or correct its schema",
		},
		"a tool that is not named": {
			gpt, only(model.CauseTool),
			refused + "The schema of a tool is refused; the message does not name it. Find it with deny in spec.tools of Agent a: The request has 150 tools: 148 of Toolset odd, 2 others",
		},
		"too many tools": {
			gpt, because(model.Refusal{Cause: model.CauseTooManyTools, Limit: 128}),
			refused + "The provider takes at most 128 tools. The request has 150 tools: 148 of Toolset odd, 2 others. List the tools that the Agent needs in allow, or the tools that it does not need in deny, in spec.tools of Agent a",
		},
		"tools with reasoning": {
			gpt, only(model.CauseToolsWithReasoning),
			refused + `This model takes tools together with reasoning only over another API, or not at all. Set spec.api of Model gpt to Responses if the server has that API, or spec.inference.reasoning of Model gpt to "Off", and remove spec.inference.reasoning of Agent a`,
		},
		"a parameter of a user": {
			gpt, because(model.Refusal{Cause: model.CauseParameter, Field: "top_p", Setting: "inference.topP"}),
			refused + "The field top_p is refused. Change or remove spec.inference.topP of Model gpt, or of Agent a if it is set there",
		},
		"a parameter of Deckhand": {
			gpt, because(model.Refusal{Cause: model.CauseParameter, Field: "usage"}),
			refused + `Deckhand sends usage by itself. Set spec.requestRepair of Model gpt to Enabled, or remove the field with spec.inference.extra of Model gpt: {"usage": null}`,
		},
		"a limit of the answer": {
			gpt, because(model.Refusal{Cause: model.CauseOutputLimit, Limit: 4096, Setting: "inference.maxOutputTokens"}),
			refused + "The answer may be shorter than is asked for. Set spec.inference.maxOutputTokens of Model gpt, or of Agent a if it is set there, to at most 4096",
		},
		"a limit of the answer that no user has set": {
			gpt, because(model.Refusal{Cause: model.CauseOutputLimit, Limit: 4096}),
			refused + "The answer may be shorter than is asked for. Set spec.inference.maxOutputTokens of Model gpt, or of Agent a if it is set there, to at most 4096",
		},
		"an unknown authority": {
			gpt, &model.CertificateError{Message: "x509: certificate signed by unknown authority", Unknown: true},
			"Misconfigured: Model gpt: the certificate of the model endpoint cannot be verified: x509: certificate signed by unknown authority. " +
				"Put the certificate of its CA into a ConfigMap, and name that in spec.podTemplate.caBundleConfigMapRef of Agent a or in the chart value runner.caBundleConfigMapRef",
		},
		"an address that is not reached": {
			gpt, &model.AddressError{Message: "the address 169.254.169.254 may not be reached"},
			"Misconfigured: Model gpt: the model endpoint is not asked: the address 169.254.169.254 may not be reached. " +
				"Correct spec.endpoint of the Model, or the DNS record of its host",
		},
		"a certificate of another host": {
			gpt, &model.CertificateError{Message: "x509: certificate is valid for b, not a"},
			"Misconfigured: Model gpt: the certificate of the model endpoint cannot be verified: x509: certificate is valid for b, not a. " +
				"Check the host in spec.endpoint of Model gpt, and the names in the certificate of the server",
		},
	}
	actor := &Actor{Agent: task.Agent{Name: "a"}, Tools: toolsetBox()}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := modelEnd(&tc.model, actor, tc.err).Error(); got != tc.want {
				t.Errorf("modelEnd() =\n%s, want\n%s", got, tc.want)
			}
		})
	}
}

// What a Go program reads names the fields of its Agent, for every error of a model.
func TestAProgramReadsOfItsOwnFields(t *testing.T) {
	gpt := Model{Name: "gpt", Credential: "Agent.Key"}
	expired := &model.UnauthorizedError{Status: 401, Message: "the key has expired"}
	refused := func(f model.Refusal) error { return &model.BadRequestError{Status: 400, Message: "no", Refusal: f} }
	cases := []struct {
		model Model
		err   error
		want  string
	}{
		{Model{Name: "gpt"}, &model.UnauthorizedError{Status: 401}, "set Agent.Key"},
		{gpt, &model.UnauthorizedError{Status: 401, Message: "no"}, "check Agent.Key"},
		{gpt, expired, "create a new key at the provider, and return it from Agent.Key"},
		{gpt, &model.TimeoutError{Field: "total"}, "Set Agent.Model.Timeouts.TotalSeconds to a longer time if the model needs it; otherwise check the server at its endpoint"},
		{gpt, &model.AddressError{Message: "no"}, "Correct Agent.Model.Endpoint, or the DNS record of its host"},
		{gpt, &model.CertificateError{Unknown: true}, "Add the certificate of its CA to the trusted certificates of this machine, or name its file in the environment variable SSL_CERT_FILE"},
		{gpt, &model.CertificateError{}, "Check the host in Agent.Model.Endpoint, and the names in the certificate of the server"},
		{gpt, refused(model.Refusal{}), "Check Endpoint, Model and Params of Agent.Model"},
		{gpt, refused(model.Refusal{Cause: model.CauseTool}), "Leave out entries of Agent.Tools to find it: The request has 150 tools: 148 of Toolset odd, 2 others"},
		{gpt, refused(model.Refusal{Cause: model.CauseTool, Tool: "odd__tool_149"}), "Remove it from Agent.Tools, or correct its schema"},
		{gpt, refused(model.Refusal{Cause: model.CauseTooManyTools, Limit: 8}), "List fewer in Agent.Tools"},
		{gpt, refused(model.Refusal{Cause: model.CauseNoTools}), "Set Agent.Model.Model to a model with tool calls, or turn on tool calls in the server, for example with --jinja in llama.cpp or --enable-auto-tool-choice in vLLM"},
		{gpt, refused(model.Refusal{Cause: model.CauseToolsWithReasoning}), "Set Agent.Model.API to Responses if the server has that API, or Agent.Model.Params.Reasoning to Off"},
		{gpt, refused(model.Refusal{Cause: model.CauseOtherAPI}), "Set Agent.Model.API to Responses or ChatCompletions, whichever it names, or Agent.Model.Model to another model"},
		{gpt, refused(model.Refusal{Cause: model.CauseRoles}), "Use another chat template in the server, or another model in Agent.Model.Model"},
		{gpt, refused(model.Refusal{Cause: model.CauseReasoningMissing}), "Leave Agent.Model.RequestRepair empty, or set Agent.Model.Params.Reasoning to Off"},
		{gpt, refused(model.Refusal{Cause: model.CausePayment}), "Add credit or change the billing at the provider, or return a key of another account from Agent.Key"},
		{gpt, refused(model.Refusal{Cause: model.CauseModel}), "Check Agent.Model.Model, and that Agent.Model.Endpoint has the path that the API requires, for example /v1"},
		{gpt, refused(model.Refusal{Cause: model.CauseInferenceProfile}), "Set Agent.Model.Model to the ID or ARN of one, for example us., eu. or global. before this modelID"},
		{gpt, refused(model.Refusal{Cause: model.CausePage}), "Check Agent.Model.Endpoint, and the environment variables HTTPS_PROXY, HTTP_PROXY and NO_PROXY"},
		{gpt, refused(model.Refusal{Cause: model.CauseServer}), "Change its configuration, or Agent.Model.Endpoint"},
		{gpt, refused(model.Refusal{Cause: model.CauseOutputLimit, Limit: 9}), "Set Agent.Model.Params.MaxOutputTokens to at most 9"},
		{gpt, refused(model.Refusal{Cause: model.CauseParameter, Field: "f", Setting: "inference.topP"}), "Change or remove Agent.Model.Params.TopP"},
		{gpt, refused(model.Refusal{Cause: model.CauseParameter, Field: "f"}), `Leave Agent.Model.RequestRepair empty, or remove the field with Agent.Model.Params.Extra: {"f": null}`},
	}
	actor := &Actor{Agent: task.Agent{Name: "a"}, Tools: toolsetBox(), Place: place.Program}
	for _, tc := range cases {
		if got := modelEnd(&tc.model, actor, tc.err).Error(); !strings.HasSuffix(got, tc.want) || strings.Contains(got, "spec.") {
			t.Errorf("modelEnd(%v) =\n%s, want\n… %s", tc.err, got, tc.want)
		}
	}
}

// Each cause has an advice of its own, which fits into a message behind a long quotation.
func TestEachCauseHasAnAdvice(t *testing.T) {
	causes := []model.Cause{
		model.CauseTool, model.CauseTooManyTools, model.CauseNoTools, model.CauseToolsWithReasoning, model.CauseOtherAPI, model.CauseRoles,
		model.CauseReasoningMissing, model.CauseParameter, model.CauseOutputLimit, model.CausePayment, model.CauseModel, model.CauseInferenceProfile, model.CausePage, model.CauseServer,
	}
	actor := &Actor{Agent: task.Agent{Name: "a"}, Tools: toolsetBox()}
	seen := map[string]model.Cause{}
	for _, c := range causes {
		err := &model.BadRequestError{Status: 400, Message: strings.Repeat("long ", 200), Refusal: model.Refusal{Cause: c}}
		message := modelEnd(&Model{Name: "gpt"}, actor, err).Message
		_, advice, _ := strings.Cut(message, "…. ")
		if other, ok := seen[advice]; ok || advice == "" || strings.Contains(advice, "{") && c != model.CauseParameter || len(message) > task.MaxMessage {
			t.Errorf("%s has the advice %q in %d bytes, as %q", c, advice, len(message), other)
		}
		seen[advice] = c
	}
}

// A repairedModel is a model whose provider refuses each request once.
type repairedModel struct{ model.Model }

func (m repairedModel) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		repair := &model.Repair{Kind: model.RepairField, Change: "usage is not sent"}
		if !yield(model.Delta{Repair: repair, Because: "unknown field usage"}, nil) {
			return
		}
		m.Model.Stream(ctx, req)(yield)
	}
}

func TestARepairIsAnEventAndCounts(t *testing.T) {
	s := newTestRun(nil, says("ok"))
	s.Actor.Model.Model = repairedModel{s.model}
	out := s.run(t)
	if c := out.Progress.Counts; out.Reason != task.ReasonFinished || c.Repairs != 1 || c.ModelCalls != 2 || c.Errors != 0 {
		t.Errorf("ended %s with %+v", out.Reason, c)
	}
	want := `{"step":2,"kind":"Field","change":"usage is not sent"}`
	if log := mustJSON(t, s.sink.all); strings.Count(log, want) != 1 {
		t.Errorf("the log does not have %q: %s", want, log)
	}
}

func TestChangedSchemasAreEventsAndCount(t *testing.T) {
	look := echo("odd__look", tool.ReadOnly)
	look.Internal = facts.Facts{SchemaChanges: []string{"items of an array are added", "required: null is removed"}}.Internal()
	s := newTestRun(enginetest.Toolbox{look, echo("Other", tool.ReadOnly)}, says("ok"))
	out := s.run(t)
	if c := out.Progress.Counts; c.Repairs != 1 || c.ModelCalls != 1 {
		t.Errorf("counts %+v", c)
	}
	want := `{"step":1,"kind":"ToolSchema","change":"items of an array are added; required: null is removed","tool":"odd__look"}`
	if log := mustJSON(t, s.sink.all); strings.Count(log, want) != 1 {
		t.Errorf("the log does not have %q: %s", want, log)
	}
	again := s.again(enginetest.Toolbox{look}, says("ok"))
	if c := again.run(t).Progress.Counts; c.Repairs != 1 {
		t.Errorf("after a resume: %+v", c)
	}
}
