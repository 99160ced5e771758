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
		"a request it cannot use": {Model{Name: "gpt"}, badRequest, "Misconfigured: Model gpt: " + badRequest.Error() + "; check the Model's endpoint, modelID and inference"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := modelEnd(&tc.model, tc.err).Error(); got != tc.want {
				t.Errorf("modelEnd() = %q, want %q", got, tc.want)
			}
		})
	}
}
