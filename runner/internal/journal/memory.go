package journal

import (
	"iter"
	"slices"
	"sync"
)

// Memory is a Log that is gone with the process. The zero value is empty and
// ready.
type Memory struct {
	mu      sync.Mutex
	records []Record
}

var _ Log = (*Memory)(nil)

// Append records r.
func (m *Memory) Append(r Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.Seq = int64(len(m.records)) + 1
	m.records = append(m.records, r)
	return nil
}

// Read returns the records appended so far.
func (m *Memory) Read() iter.Seq2[Record, error] {
	m.mu.Lock()
	records := slices.Clone(m.records)
	m.mu.Unlock()
	return func(yield func(Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}
