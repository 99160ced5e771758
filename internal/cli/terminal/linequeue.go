package terminal

import (
	"bufio"
	"io"
	"sync"
)

// A LineQueue has the lines of a stream that were read and not yet taken. It has no bound: it is for a stream that
// ends, and that must be read even while no goroutine takes lines.
type LineQueue struct {
	mu    sync.Mutex
	added *sync.Cond
	lines [][]byte
	ended bool
}

// ReadLines reads a stream to its end.
func ReadLines(in io.Reader) *LineQueue {
	q := &LineQueue{}
	q.added = sync.NewCond(&q.mu)
	go func() {
		for reader, ended := bufio.NewReader(in), false; !ended; {
			line, err := reader.ReadBytes('\n')
			ended = err != nil
			q.add(line, ended)
		}
	}()
	return q
}

func (q *LineQueue) add(line []byte, ended bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lines, q.ended = append(q.lines, line), ended
	q.added.Signal()
}

// Next waits for a line, and returns whether more follow. The last one may be empty.
func (q *LineQueue) Next() (line []byte, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.lines) == 0 {
		q.added.Wait()
	}
	line, q.lines = q.lines[0], q.lines[1:]
	return line, len(q.lines) > 0 || !q.ended
}
