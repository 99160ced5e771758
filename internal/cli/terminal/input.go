package terminal

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"sync"
)

// Argument returns a text of the command line, or standard input for -.
func (s *Streams) Argument(ctx context.Context, text string) (string, error) {
	if text != "-" {
		return text, nil
	}
	data, err := s.ReadInput(ctx)
	return string(data), err
}

// ReadInput reads standard input to its end. A user at a terminal reads that the command waits for them.
func (s *Streams) ReadInput(ctx context.Context) ([]byte, error) {
	if IsTerminal(s.In) {
		fmt.Fprintln(s.Err, "Reading standard input: Ctrl-D ends it, Ctrl-C stops the command")
	}
	data, err := interruptible(ctx, func() ([]byte, error) { return io.ReadAll(s.In) })
	if err != nil {
		return nil, fmt.Errorf("reading standard input: %w", err)
	}
	return data, nil
}

// ReadFile reads a file. A FIFO without a writer is not waited for after an interrupt.
func ReadFile(ctx context.Context, name string) ([]byte, error) {
	return interruptible(ctx, func() ([]byte, error) { return os.ReadFile(name) })
}

// interruptible returns the result of read, or the error of ctx if that ends first. A read of a terminal, a pipe or a
// FIFO cannot be interrupted; it continues until the process ends.
func interruptible(ctx context.Context, read func() ([]byte, error)) ([]byte, error) {
	var data []byte
	ended := make(chan error, 1)
	go func() {
		var err error
		data, err = read()
		ended <- err
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case err := <-ended:
		return data, err
	}
}

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
