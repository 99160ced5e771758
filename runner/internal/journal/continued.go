package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A Continued names the session of another Run that a Run continues.
type Continued struct {
	// Run and RunUID are the name and the UID of that Run.
	Run    string `json:"run"`
	RunUID string `json:"runUID"`
	// Step is the last step that is taken over; 0: all of them.
	Step int64 `json:"step,omitempty"`
	// Through is the last record of its journal that is read.
	Through int64 `json:"through"`
	// Models are the Models whose definitions have not changed since. Only these get the opaque parts of their answers.
	Models []string `json:"models,omitempty"`
}

// maxChain is the most Runs that a Run may continue, one after the other.
const maxChain = 20

// SourceDir returns the folder of a state directory for the state directory of the Run that is continued.
func SourceDir(dir string) string { return filepath.Join(dir, task.SourceFolder) }

// A history is the journal of a Run in the files of all its attempts. The journal of the Run that it continues precedes it.
type history struct {
	segments  []segment // oldest first
	continued *source   // nil: the Run continues none
}

// A source is the part of the journal of another Run that a Run takes over.
type source struct {
	history

	through int64
	fork    *fork // nil: all of it
}

// A fork is the end of a session that was cut behind a step.
type fork struct {
	step int64
	// again are the calls of the last turn that is kept whose results are not. They are made again, so nothing is kept of
	// them.
	again map[string]bool
}

// read returns the records up to number until, first those of the Run that is continued.
func (h history) read(until int64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for _, part := range h.parts(until) {
			for r, err := range part {
				if !yield(r, err) || err != nil {
					return
				}
			}
		}
	}
}

// parts returns what read returns, by the files.
func (h history) parts(until int64) []iter.Seq2[Record, error] {
	var parts []iter.Seq2[Record, error]
	seq := int64(0)
	if c := h.continued; c != nil {
		to := min(until, c.through)
		parts, seq = append(parts, c.records(to)), to
	}
	for i, s := range h.segments {
		to := min(until, lastValid(h.segments[i+1:], s.last))
		parts = append(parts, readSegment(s, seq, to))
		seq = max(seq, to)
	}
	return parts
}

// last returns the number of the last record of all attempts.
func (h history) last() int64 {
	for _, s := range slices.Backward(h.segments) {
		if s.header != nil {
			return s.last
		}
	}
	return 0
}

// records returns the records that are taken over, up to number until. Their numbers are not contiguous behind a fork.
func (s *source) records(until int64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for r, err := range s.read(until) {
			if err == nil && s.fork != nil && !s.fork.keeps(r) {
				continue
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// keeps reports whether a record belongs to what is taken over.
func (f *fork) keeps(r Record) bool {
	switch {
	case r.Session != "":
		return !f.isAgain(r.Session)
	case r.Intent != nil && r.Intent.CallID != "":
		return !f.isAgain(r.Intent.CallID)
	case r.Request != nil && r.Request.CallID != "":
		return !f.isAgain(r.Request.CallID)
	case r.Step != nil:
		return r.Step.Seq <= f.step
	}
	return true
}

// isAgain reports whether a call or a session belongs to a call that is made again.
func (f *fork) isAgain(id string) bool {
	own, _, _ := strings.Cut(id, ".")
	return f.again[own]
}

// openSource opens the journal of the Run that a Run continues, up to a record; 0: not yet known.
func openSource(dir string, c Continued, depth int) (*source, error) {
	if depth > maxChain {
		return nil, fmt.Errorf("more than %d Runs continue each other: begin a new one with what matters of them in its prompt", maxChain)
	}
	dir = SourceDir(dir)
	found, first, err := segmentsOf(dir, c.RunUID, checkSegment)
	if err != nil {
		return nil, err
	}
	s := &source{history: history{segments: found}}
	if first.Continues != nil {
		if s.continued, err = openSource(dir, *first.Continues, depth+1); err != nil {
			return nil, err
		}
	}
	s.through = s.last()
	if c.Through > s.through {
		return nil, fmt.Errorf("the journal in %s ends with record %d, and not with record %d or later", dir, s.through, c.Through)
	}
	if c.Through != 0 {
		s.through = c.Through
	}
	if c.Step == 0 {
		return s, nil
	}
	return s, s.cut(c)
}

// CheckOwner returns a NotContinuedError if a state directory has no journal of the Run with a name and a UID. It reads
// the headers alone: Open finds what else is wrong.
func CheckOwner(dir, run, runUID string) error {
	_, _, err := segmentsOf(dir, runUID, readHeader)
	return notContinued(run, err)
}

// notContinued returns a NotContinuedError for an error of the journal of a Run. An error of the disk is returned as it
// is, because the next attempt may read it.
func notContinued(run string, err error) error {
	failed, is := errors.AsType[*fs.PathError](err)
	if err == nil || is && !errors.Is(failed, fs.ErrNotExist) {
		return err
	}
	return &NotContinuedError{Run: run, Err: err}
}

// segmentsOf returns the files of the journal of a Run that has begun, as read returns them, and its first header.
func segmentsOf(dir, runUID string, read func(segment) (segment, error)) ([]segment, *Header, error) {
	found, err := readSegments(dir, read)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("its volume has no files of a session: %w", err)
	}
	if err != nil {
		return nil, nil, err
	}
	for _, s := range found {
		if err := checkHeader(s, runUID); err != nil {
			return nil, nil, err
		}
	}
	first := firstHeader(found)
	if first == nil {
		return nil, nil, fmt.Errorf("the directory %s has no journal", dir)
	}
	return found, first, nil
}

// cut finds the fork of a session.
func (s *source) cut(c Continued) error {
	f := &fork{step: c.Step, again: map[string]bool{}}
	var at, last int64
	found := false
	for r, err := range s.read(s.through) {
		if err != nil {
			return err
		}
		if r.Session != "" || r.Step == nil {
			continue
		}
		last = max(last, r.Step.Seq)
		if r.Step.Seq > c.Step {
			continue
		}
		at, found = r.Seq, found || r.Step.Seq == c.Step
		f.add(*r.Step)
	}
	if !found {
		return &NoStepError{Run: c.Run, Step: c.Step, Last: last}
	}
	s.through, s.fork = at, f
	return nil
}

// add adds a step that is kept.
func (f *fork) add(s step.Step) {
	if s.Role == step.RoleTool {
		delete(f.again, s.CallID)
		return
	}
	for _, c := range s.Calls {
		f.again[c.ID] = true
	}
}

func firstHeader(found []segment) *Header {
	for _, s := range found {
		if s.header != nil {
			return s.header
		}
	}
	return nil
}

// A NoStepError means that the Run to continue has no step with a number.
type NoStepError struct {
	Run        string
	Step, Last int64
}

func (e *NoStepError) Error() string {
	return fmt.Sprintf("Run %s has %d steps, and no step %d", e.Run, e.Last, e.Step)
}
