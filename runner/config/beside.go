package config

import (
	"context"
	"slices"

	"github.com/deckhand-dev/deckhand/runner/evict"
	"github.com/deckhand-dev/deckhand/runner/guide"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/tool/files"
	"github.com/deckhand-dev/deckhand/runner/tool/recall"
)

// pagers are the tools that bound their results themselves. What reads parts of
// files must be able to read parts of what was put aside.
var pagers = []string{files.NameRead, files.NameLs, files.NameGlob, files.NameGrep, files.NameEdit, files.NameWrite, recall.Name}

const (
	bytesPerToken = 4
	leastEvicted  = 4 << 10 // what a preview may have itself
)

// evictor puts large results where the model may read them in parts. Large is
// what has more than an eighth of the smallest window: the last few results of
// a session are never hidden, and must fit.
func (b *builder) evictor() func(ctx context.Context, call step.Call, text string) string {
	bytes := int64(evict.DefaultBytes)
	for _, t := range b.models.targets {
		if t.Window > 0 {
			bytes = min(bytes, max(t.Window/8*bytesPerToken, leastEvicted))
		}
	}
	e := evict.New(evict.To(b.places.results), evict.Options{
		Bytes: int(bytes),
		Keep:  func(tool string) bool { return slices.Contains(pagers, tool) },
	})
	return e.Text
}

// opening adds what the workspace says of itself to the first that the agent is
// told. A file that cannot be read is no reason not to work.
func (b *builder) opening() func(prompt string) string {
	if b.Snapshot.Agent.IgnoreInstructions {
		return nil
	}
	return func(prompt string) string {
		says, err := guide.Read(context.Background(), b.Workspace)
		if err != nil {
			return prompt
		}
		return guide.Attach(prompt, says)
	}
}
