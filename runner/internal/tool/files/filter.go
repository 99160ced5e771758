package files

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// maxAnswers bounds how many decisions of the policy one call keeps, by file.
const maxAnswers = 10_000

// A filter removes files from a list that the policies of the session do not let it Read without asking a user. It is
// safe for concurrent use.
type filter struct {
	t       *Toolset
	ctx     context.Context
	session tool.Session // nil: everything may be read

	mu      sync.Mutex
	answers map[string]bool // by name of the file
	left    map[string]bool // out of the list, by path of the backend
}

func (t *Toolset) filterFor(ctx context.Context, call tool.Call) *filter {
	f := &filter{t: t, ctx: ctx, answers: map[string]bool{}, left: map[string]bool{}}
	if call.Session != nil && call.Session.HasPolicy() {
		f.session = call.Session
	}
	return f
}

// allows reports whether a file may be read, by its path in the backend.
func (f *filter) allows(at string) bool {
	name := f.t.view.name(at)
	f.mu.Lock()
	answer, known := f.answers[name]
	f.mu.Unlock()
	if known {
		return answer
	}
	args, err := json.Marshal(map[string]string{"path": name})
	answer = err == nil && f.session.Allows(f.ctx, NameRead, args)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.answers) < maxAnswers {
		f.answers[name] = answer
	}
	return answer
}

// readableEntries returns the entries of Ls that may be read.
func (f *filter) readableEntries(infos []backend.Info) []backend.Info {
	if f.session == nil {
		return infos
	}
	return slices.DeleteFunc(infos, f.skipInfo())
}

// skipInfo returns a function that reports which entries of Ls and Glob to skip. A link may be shown only if its target
// may be read as well.
func (f *filter) skipInfo() func(backend.Info) bool {
	if f.session == nil {
		return nil
	}
	return func(info backend.Info) bool {
		if f.allows(info.Path) && (!info.Link || f.allowsTarget(info.Path)) {
			return false
		}
		f.leaveOut(info.Path)
		return true
	}
}

// allowsTarget reports whether the target of a link may be read. A link without a target reveals nothing.
func (f *filter) allowsTarget(link string) bool {
	target, err := f.t.backend.Resolve(f.ctx, link)
	return err != nil || f.allows(target)
}

// skip returns a function that Grep calls for each file before it searches it. If it were called only after a match,
// the note would reveal whether a forbidden file matches the pattern.
func (f *filter) skip() func(at string) bool {
	if f.session == nil {
		return nil
	}
	return func(at string) bool {
		if f.allows(at) {
			return false
		}
		f.leaveOut(at)
		return true
	}
}

// leaveOut counts a file once, even if several patterns find it. It stops counting at maxAnswers.
func (f *filter) leaveOut(at string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.left) <= maxAnswers {
		f.left[at] = true
	}
}

// note adds to a result how many files were left out.
func (f *filter) note(result string) string {
	switch n := len(f.left); {
	case n == 0:
		return result
	case n == 1:
		return result + "\n[1 file left out: the policy does not let this agent read it]"
	case n > maxAnswers:
		return fmt.Sprintf("%s\n[more than %d files left out: the policy does not let this agent read them]", result, maxAnswers)
	default:
		return fmt.Sprintf("%s\n[%d files left out: the policy does not let this agent read them]", result, n)
	}
}
