package shell

import (
	"context"
	"fmt"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/internal/tool/remember"
)

// Name and bounds of the state.
const (
	stateFile = "shell.json"
	maxDirs   = 256 // working directories other than the workspace
	maxShown  = 200 // bytes of a command in a list
)

// A state is stored for the next attempt.
type state struct {
	// Dirs are the working directories of shells, unless they are the workspace.
	Dirs map[string]string `json:"dirs,omitempty"`
	// Jobs counts the background commands so far.
	Jobs int `json:"jobs,omitempty"`
	// Running describes those that run, for the model.
	Running []string `json:"running,omitempty"`
}

// load reads the state of an earlier attempt. Its running commands are lost.
func (s *Shells) load() error {
	s.state.Dirs = map[string]string{}
	if err := remember.Load(s.opts.State, stateFile, &s.state); err != nil {
		return err
	}
	if s.state.Dirs == nil {
		s.state.Dirs = map[string]string{}
	}
	s.lost = s.state.Running
	s.state.Running = nil
	return nil
}

// save stores the state. Errors are ignored, because a full disk must not fail a
// command.
func (s *Shells) save() {
	s.state.Running = nil
	for _, j := range s.jobs {
		if j.running() {
			s.state.Running = append(s.state.Running, fmt.Sprintf("background command %s (%s)", j.id, j.line))
		}
	}
	_ = remember.Save(s.opts.State, stateFile, s.state) // as above
}

// dir returns the working directory of a shell.
func (s *Shells) dir(shellKey string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if dir, ok := s.state.Dirs[shellKey]; ok {
		return dir
	}
	return s.opts.Workspace
}

// setDir sets the working directory of a shell.
func (s *Shells) setDir(shellKey, dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.state.Dirs, shellKey)
	if dir != s.opts.Workspace {
		s.makeRoom()
		s.state.Dirs[shellKey] = dir
	}
	s.save()
}

// makeRoom removes directories until there is room for one more.
func (s *Shells) makeRoom() {
	for shellKey := range s.state.Dirs {
		if len(s.state.Dirs) < maxDirs {
			return
		}
		delete(s.state.Dirs, shellKey)
	}
}

// resetDirs sets the working directory of all shells to the workspace.
func (s *Shells) resetDirs() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.state.Dirs)
	s.save()
}

// lock waits until no other command runs in the shell.
func (s *Shells) lock(ctx context.Context, shellKey string) (unlock func(), err error) {
	s.mu.Lock()
	held, ok := s.locks[shellKey]
	if !ok {
		held = make(chan struct{}, 1)
		s.locks[shellKey] = held
	}
	s.mu.Unlock()
	select {
	case held <- struct{}{}:
		return func() { <-held }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// shorten returns the beginning of a command line, for lists.
func shorten(line string) string {
	line, _, more := strings.Cut(strings.TrimSpace(line), "\n")
	if len(line) > maxShown {
		line, more = strings.ToValidUTF8(line[:maxShown], ""), true
	}
	if more {
		line += " …"
	}
	return line
}
