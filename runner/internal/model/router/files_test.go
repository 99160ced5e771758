package router

import (
	"testing"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// A Model that takes no images reads a line, and a fallback that takes them gets the image.
func TestRequestHasALineForWhatAModelDoesNotTake(t *testing.T) {
	file := &step.File{Digest: "d", MediaType: "image/png", Width: 800, Height: 600, Name: "chart.png"}
	req := &model.Request{Steps: []step.Step{{Seq: 1, Role: step.RoleUser, Parts: []step.Part{
		{Kind: step.PartText, Text: "Look."}, {Kind: step.PartImage, File: file},
	}}}}
	blind := Target{Takes: func(kind step.PartKind) bool { return kind != step.PartImage }}
	const want = "Look.\n[image chart.png, 800x600, image/png: this model does not take images]"
	if got := blind.request(req).Steps[0]; got.Text() != want || got.HasFiles() {
		t.Errorf("the step is %+v", got)
	}
	blind.Name = "old"
	if got, want := blind.fileWarning(req.Steps), "1 of 1 files that a user shows are not sent, and the agent reads a line for each: Model old does not take them. Use another Model"; got != want {
		t.Errorf("the warning is %q", got)
	}
	if got := (&Target{}).fileWarning(req.Steps); got != "" {
		t.Errorf("the warning of a fallback is %q", got)
	}
	if got := (&Target{}).request(req).Steps[0]; got.Text() != "Look." || !got.HasFiles() {
		t.Errorf("the step of a fallback is %+v", got)
	}
}
