package snapshot

import (
	"errors"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/tool/request"
)

// CheckToolset says what keeps a Toolset from being Ready, if anything: whether
// its server answers only a Run can tell.
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
