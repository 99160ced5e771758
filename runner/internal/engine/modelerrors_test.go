package engine

import (
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/model"
)

func TestModelEndNamesTheFieldsToCheck(t *testing.T) {
	unauthorized, badRequest := &model.UnauthorizedError{Status: 401, Message: "no"}, &model.BadRequestError{Status: 400, Message: "no"}
	timeout := func(field string) error {
		return &model.IncompleteError{Cause: &model.TimeoutError{Field: field, After: 2 * time.Minute}}
	}
	for name, tc := range map[string]struct {
		model Model
		err   error
		want  string
	}{
		"a refused key":           {Model{Name: "gpt", Credential: "the key k of the Secret s"}, unauthorized, "Misconfigured: Model gpt: " + unauthorized.Error() + "; check the key k of the Secret s"},
		"no key":                  {Model{Name: "gpt"}, unauthorized, "Misconfigured: Model gpt: " + unauthorized.Error() + "; set spec.apiKeySecretRef of Model gpt"},
		"no key of a fallback":    {Model{Name: "gpt", Credential: "the key k of the Secret s"}, &model.SourceError{Model: "nokey", Err: unauthorized}, "Misconfigured: Model nokey: " + unauthorized.Error() + "; set spec.apiKeySecretRef of Model nokey"},
		"an answer broken off":    {Model{Name: "gpt"}, &model.BrokenOffError{Reason: "abort"}, "ModelUnavailable: Model gpt: the provider broke off the answer (finish reason abort); if this does not pass, check the Model's endpoint"},
		"a call it cannot read":   {Model{Name: "gpt"}, &model.SourceError{Model: "two", Err: &model.BrokenOffError{Reason: "MALFORMED_FUNCTION_CALL", Unusable: true}}, "InvalidOutput: Model two: the provider could not use what the model wrote (finish reason MALFORMED_FUNCTION_CALL), in every try. Simplify the tools and their schemas, or use another Model"},
		"a request it cannot use": {Model{Name: "gpt"}, badRequest, "Misconfigured: Model gpt: " + badRequest.Error() + "; check the Model's endpoint, modelID and inference"},
		"a silent server":         {Model{Name: "gpt"}, timeout("firstByte"), "ModelUnavailable: Model gpt: no byte came for 2m0s before the answer began (spec.timeouts.firstByte). Set spec.timeouts.firstByte of Model gpt to a longer time if the model needs it; otherwise check the server at its endpoint"},
		"a silent fallback":       {Model{Name: "gpt"}, &model.SourceError{Model: "mini", Err: timeout("total")}, "ModelUnavailable: Model mini: the answer was not complete after 2m0s (spec.timeouts.total). Set spec.timeouts.total of Model mini to a longer time if the model needs it; otherwise check the server at its endpoint"},
		"a stream without an end": {Model{Name: "gpt"}, timeout(""), "ModelUnavailable: Model gpt: no byte came for 2m0s. Check the server at the Model's endpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := modelEnd(&tc.model, tc.err).Error(); got != tc.want {
				t.Errorf("modelEnd() = %q, want %q", got, tc.want)
			}
		})
	}
}
