package engine

import (
	"testing"

	"github.com/deckhand-dev/deckhand/runner/model"
)

func TestModelEndNamesTheFieldsToCheck(t *testing.T) {
	unauthorized, badRequest := &model.UnauthorizedError{Status: 401, Message: "no"}, &model.BadRequestError{Status: 400, Message: "no"}
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
	} {
		t.Run(name, func(t *testing.T) {
			if got := modelEnd(&tc.model, tc.err).Error(); got != tc.want {
				t.Errorf("modelEnd() = %q, want %q", got, tc.want)
			}
		})
	}
}
