package files

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// The names of the tools.
const (
	NameRead  = "Read"
	NameWrite = "Write"
	NameEdit  = "Edit"
	NameLs    = "Ls"
	NameGlob  = "Glob"
	NameGrep  = "Grep"
)

// A Toolset is the file tools of one session.
type Toolset struct {
	backend *backend.Backend
	view    View
	states  *readStates
	changes *changes
}

// Over makes the tools over a backend, with the names of a view.
func Over(b *backend.Backend, v View) *Toolset {
	v = v.clean()
	return &Toolset{backend: b, view: v, states: newReadStates(), changes: &changes{view: v, paths: map[string]bool{}}}
}

// ForSession returns the same tools for another session, such as the session of a sub-agent. It has read nothing yet,
// and its changes are counted with the changes of this session.
func (t *Toolset) ForSession() *Toolset {
	return &Toolset{backend: t.backend, view: t.view, states: newReadStates(), changes: t.changes}
}

// Tools returns the tools.
func (t *Toolset) Tools() []tool.Tool {
	return []tool.Tool{t.edit(), t.glob(), t.grep(), t.ls(), t.readFile(), t.write()}
}

// Replay records a call that succeeded in an earlier attempt of the session: files that it read need not be read again,
// and files that it changed are counted. Calls of other tools are ignored.
func (t *Toolset) Replay(name string, args json.RawMessage) {
	if name != NameRead && name != NameWrite && name != NameEdit {
		return
	}
	var named struct {
		Path string `json:"path"`
	}
	if json.Unmarshal(args, &named) != nil {
		return
	}
	at, err := t.view.resolve(named.Path)
	if err != nil {
		return
	}
	s := t.states.lock(at)
	defer s.Unlock()
	s.set(backend.Any)
	if name != NameRead {
		t.changes.add(at)
	}
}

// Changed returns the files below the view's Home that were created or changed through the tools and still exist, with
// the names that the model uses, in the order of [backend.Compare].
func (t *Toolset) Changed(ctx context.Context) ([]backend.Info, error) {
	return t.changes.list(ctx, t.backend)
}

// reading returns the Spec of a tool that only reads.
func reading(name, page string) tool.Spec {
	return tool.Spec{
		Name: name, Description: strings.TrimSpace(page),
		Effect: tool.ReadOnly, Concurrency: tool.Parallel,
	}
}

// changing returns the Spec of a tool that changes the file at its path.
func changing(name, page string, effect tool.Effect) tool.Spec {
	return tool.Spec{
		Name: name, Description: strings.TrimSpace(page),
		Effect: effect, Concurrency: tool.PerPath,
	}
}
