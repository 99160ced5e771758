package shell

import (
	"context"
	"fmt"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/internal/tool/remember"
)

// What is remembered is bounded.
const (
	stateFile = "shell.json"
	maxDirs   = 256 // shells that are not in the workspace
	maxShown  = 200 // bytes of a command that are shown
)

// A state is what the next attempt has to know.
type state struct {
	// Dirs are where the shells are that are not in the workspace.
	Dirs map[string]string `json:"dirs,omitempty"`
	// Jobs is how many background commands there have been.
	Jobs int `json:"jobs,omitempty"`
	// Running are those that run, as the model knows them.
	Running []string `json:"running,omitempty"`
}

// load reads what an earlier attempt left. What it left running is lost.
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

// save writes what the next attempt has to know. A disk that is full makes it
// start in the workspace, which is no reason to fail a command.
func (s *Shells) save() {
	s.state.Running = nil
	for _, j := range s.jobs {
		if j.running() {
			s.state.Running = append(s.state.Running, fmt.Sprintf("background command %s (%s)", j.id, j.line))
		}
	}
	_ = remember.Save(s.opts.State, stateFile, s.state) // as above
}

// dir is where a shell is.
func (s *Shells) dir(which string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if dir, ok := s.state.Dirs[which]; ok {
		return dir
	}
	return s.opts.Workspace
}

// moved says where a shell is now.
func (s *Shells) moved(which, dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.state.Dirs, which)
	if dir != s.opts.Workspace {
		s.forget()
		s.state.Dirs[which] = dir
	}
	s.save()
}

// forget makes room for one more shell.
func (s *Shells) forget() {
	for which := range s.state.Dirs {
		if len(s.state.Dirs) < maxDirs {
			return
		}
		delete(s.state.Dirs, which)
	}
}

// sandboxLost puts every shell back to where it began, as the model is told.
func (s *Shells) sandboxLost() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.state.Dirs)
	s.save()
}

// lock waits until no other command runs in the shell.
func (s *Shells) lock(ctx context.Context, which string) (unlock func(), err error) {
	s.mu.Lock()
	held, ok := s.locks[which]
	if !ok {
		held = make(chan struct{}, 1)
		s.locks[which] = held
	}
	s.mu.Unlock()
	select {
	case held <- struct{}{}:
		return func() { <-held }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// brief is the beginning of a command line, for lists.
func brief(line string) string {
	line, _, more := strings.Cut(strings.TrimSpace(line), "\n")
	if len(line) > maxShown {
		line, more = strings.ToValidUTF8(line[:maxShown], ""), true
	}
	if more {
		line += " …"
	}
	return line
}
