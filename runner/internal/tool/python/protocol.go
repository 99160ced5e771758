package python

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// The outcomes of a request.
const (
	howReady       = "ready" // it has started
	howDone        = "done"
	howFailed      = "failed"      // with a traceback, which it printed
	howInterrupted = "interrupted" // so was this
	howMissing     = "missing"     // there is no such script
	howUnreadable  = "unreadable"  // there is, but it cannot be read
	howUnsaved     = "unsaved"     // the code could not be saved, and did not run
)

// hows are all outcomes.
var hows = []string{howReady, howDone, howFailed, howInterrupted, howMissing, howUnreadable, howUnsaved}

// A request is a message to an interpreter.
type request struct {
	ID        int64    `json:"id"`
	Interrupt bool     `json:"interrupt,omitempty"` // end the request of that ID
	Code      string   `json:"code,omitempty"`
	Script    string   `json:"script,omitempty"`
	Save      string   `json:"save,omitempty"`
	Args      []string `json:"args,omitempty"`
	Mark      string   `json:"mark,omitempty"` // what to print at the end
}

// An answer is a message of an interpreter.
type answer struct {
	ID   int64  `json:"id"`
	How  string `json:"how"`
	Note string `json:"note"`
}

// encode returns the encoding of a request.
func encode(r request) ([]byte, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encoding a request: %w", err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...), nil //nolint:gosec // bounded by maxCode
}

// maxAnswer and maxNote bound answers in bytes. Code in the interpreter can forge
// answers, but only about itself.
const (
	maxAnswer = 64 << 10
	maxNote   = 2 << 10
)

// errProtocol means that an interpreter wrote an invalid answer.
var errProtocol = errors.New("the interpreter's control channel carries what is no answer; the code wrote to it")

// A decoder decodes answers from chunks.
type decoder struct{ data []byte }

// write adds a chunk and returns the answers that are complete.
func (d *decoder) write(p []byte) ([]answer, error) {
	d.data = append(d.data, p...)
	var all []answer
	for len(d.data) >= 4 {
		size := binary.BigEndian.Uint32(d.data)
		if size > maxAnswer {
			return nil, errProtocol
		}
		rest := d.data[4:]
		if uint32(len(rest)) < size { //nolint:gosec // a chunk is smaller than 4 GiB
			break
		}
		var a answer
		if json.Unmarshal(rest[:size], &a) != nil || !slices.Contains(hows, a.How) {
			return nil, errProtocol
		}
		a.Note = a.Note[:min(len(a.Note), maxNote)]
		all = append(all, a)
		d.data = rest[size:]
	}
	d.data = bytes.Clone(d.data) // releases what was decoded
	return all, nil
}

// A splitter finds the mark at the end of the output of a request.
type splitter struct {
	mark []byte // empty: none is searched
	held []byte // what may be its beginning
}

// write adds a chunk and returns the output before the mark and, if it was found,
// after it.
func (s *splitter) write(p []byte) (before, after []byte, found bool) {
	data := slices.Concat(s.held, p)
	s.held = nil
	if len(s.mark) == 0 {
		return data, nil, false
	}
	if i := bytes.Index(data, s.mark); i >= 0 {
		after = data[i+len(s.mark):]
		s.mark = nil
		return data[:i], after, true
	}
	n := min(len(data), len(s.mark)-1)
	for !bytes.HasPrefix(s.mark, data[len(data)-n:]) {
		n--
	}
	s.held = data[len(data)-n:]
	return data[:len(data)-n], nil, false
}
