package config

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/deckhand-dev/deckhand/runner/internal/agentsmd"
	"github.com/deckhand-dev/deckhand/runner/internal/engine"
	"github.com/deckhand-dev/deckhand/runner/internal/offload"
	"github.com/deckhand-dev/deckhand/runner/internal/place"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/files"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/recall"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// pagers are the tools that bound their results themselves. What reads parts of
// files must be able to read parts of what was put aside.
var pagers = []string{files.NameRead, files.NameLs, files.NameGlob, files.NameGrep, files.NameEdit, files.NameWrite}

const (
	bytesPerToken = 4
	leastEvicted  = 4 << 10 // what a preview may have itself
)

// offloader puts large results where the model may read them in parts. Large is
// what has more than an eighth of the smallest window: the last few results of
// a session are never hidden, and must fit.
func (b *builder) offloader() func(ctx context.Context, call step.Call, text string) string {
	bytes := int64(offload.DefaultBytes)
	for _, t := range b.models.targets {
		if t.Window > 0 {
			bytes = min(bytes, max(t.Window/8*bytesPerToken, leastEvicted))
		}
	}
	recalls := task.ToolName(recall.Name, b.Snapshot.Version)
	e := offload.New(offload.ToBackend(b.places.results), offload.Options{
		Bytes:  int(bytes),
		Exempt: func(tool string) bool { return slices.Contains(pagers, tool) || tool == recalls },
	})
	return e.Text
}

// promptBuilder returns the function that adds the AGENTS.md of the workspace to the prompt of the Run's own
// session, if the policy lets the agent read it. A Run does not fail for want of
// that file: the log says why it is left out.
func (b *builder) promptBuilder() func(ctx context.Context, prompt string, allows engine.Allows) string {
	if b.Snapshot.Agent.IgnoreInstructions {
		return nil
	}
	return func(ctx context.Context, prompt string, allows engine.Allows) string {
		ctx = context.WithoutCancel(ctx) // a session opens once: a resumed one would not have it
		text, err := agentsmd.Read(ctx, b.places.files, task.Workspace[1:], func(at string) bool {
			args, err := json.Marshal(map[string]string{"path": "/" + at})
			return err == nil && allows(ctx, files.NameRead, args)
		})
		if err != nil {
			b.logLeftOut(err)
			return prompt
		}
		return agentsmd.Attach(prompt, text)
	}
}

// logLeftOut logs why the agent is not shown the AGENTS.md of the workspace.
func (b *builder) logLeftOut(err error) {
	if b.Log == nil {
		return
	}
	why := err.Error() + ". Correct the file"
	if denied, is := errors.AsType[*agentsmd.NotAllowedError](err); is {
		why = fmt.Sprintf("its policy does not allow Read of /%s. Allow Read of this file", denied.Path)
	}
	if b.Place != place.Program { // which has no such field
		why += ", or set workspace.agentsFile to Ignore"
	}
	b.Log(agentsmd.Name + " of the workspace is not shown to the agent: " + why + ".")
}

// loadFile reads an image or a document below the workspace that a user shows the agent, if the
// policy lets the agent read it.
func (b *builder) loadFile(ctx context.Context, name string, allows engine.Allows) (tool.File, error) {
	args, err := b.files.Canonical(ctx, path.Join(task.Workspace, name))
	if err != nil {
		return tool.File{}, err
	}
	if !allows(ctx, files.NameRead, args) {
		return tool.File{}, errors.New("the policy of the Agent does not allow Read of it. Allow it there, or name another file")
	}
	return b.files.ShowArgs(ctx, args)
}
