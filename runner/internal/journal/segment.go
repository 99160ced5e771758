package journal

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// A segment is the file of one attempt.
type segment struct {
	attempt  int
	path     string
	header   *Header // nil: the file was cut before its header was whole
	last     int64   // number of the last whole record
	size     int64   // of the whole lines
	restarts int
}

func segmentPath(dir string, attempt int) string {
	return filepath.Join(dir, fmt.Sprintf("journal-%04d.jsonl", attempt))
}

// segments surveys the files of a directory, oldest attempt first.
func segments(dir string) ([]segment, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("listing the state directory: %w", err)
	}
	var found []segment
	for _, e := range entries {
		var attempt int
		if _, err := fmt.Sscanf(e.Name(), "journal-%d.jsonl", &attempt); err != nil || e.Name() != filepath.Base(segmentPath(dir, attempt)) {
			continue
		}
		s, err := checkSegment(segment{attempt: attempt, path: filepath.Join(dir, e.Name())})
		if err != nil {
			return nil, err
		}
		found = append(found, s)
	}
	slices.SortFunc(found, func(a, b segment) int { return a.attempt - b.attempt })
	return found, nil
}

// checkSegment checks every line of a segment and reads its first and last records.
func checkSegment(s segment) (segment, error) {
	n := 0
	for l, err := range lines(s.path) {
		n++
		if err == nil {
			err = s.addLine(l)
		}
		if err != nil {
			return s, withLocation(err, s, n)
		}
	}
	return s, nil
}

// maxInspected is the size of a record that a survey looks into: a header and a mark
// are small, and the rest is left to Read.
const maxInspected = 256

// addLine takes notice of one line.
func (s *segment) addLine(l rawLine) error {
	var r struct {
		Seq    int64   `json:"seq"`
		Header *Header `json:"header"`
		Mark   *Mark   `json:"mark"`
	}
	first := s.size == 0
	if first || len(l.body) < maxInspected {
		if err := json.Unmarshal(l.body, &r); err != nil {
			return &CorruptError{Reason: err.Error()}
		}
	}
	switch {
	case first && r.Header == nil:
		return &CorruptError{Reason: "no header"}
	case first && r.Seq != r.Header.After+1:
		return &CorruptError{Reason: fmt.Sprintf("the header is record %d and follows record %d", r.Seq, r.Header.After)}
	case first:
		s.header, s.last = r.Header, r.Seq
	default:
		s.last++ // numbers are contiguous; Read holds them to it
	}
	if r.Mark != nil && r.Mark.Type == MarkRestarted {
		s.restarts++
	}
	s.size = l.end
	return nil
}
