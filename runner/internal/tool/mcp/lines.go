package mcp

import "bytes"

// A splitter makes lines of the chunks of a stream. A line is at most as long as
// a message may be.
type splitter struct{ rest []byte }

// maxRetained is how much room a splitter keeps from one line to the next.
const maxRetained = 64 << 10

// add hands over the lines that are whole with a chunk, as long as they are
// wanted. An error means that one is too long.
func (s *splitter) add(chunk []byte, line func([]byte) error) error {
	for {
		end := bytes.IndexByte(chunk, '\n')
		piece := chunk
		if end >= 0 {
			piece = chunk[:end]
		}
		if len(s.rest)+len(piece) > maxMessage {
			return errLarge
		}
		if end < 0 {
			s.rest = append(s.rest, piece...)
			return nil
		}
		if err := line(bytes.TrimSpace(s.take(piece))); err != nil {
			return err
		}
		chunk = chunk[end+1:]
	}
}

// take is what there was of a line, with the rest of it. It is good until the
// next is added.
func (s *splitter) take(rest []byte) []byte {
	if len(s.rest) == 0 {
		return rest
	}
	whole := append(s.rest, rest...)
	s.rest = whole[:0]
	if cap(whole) > maxRetained {
		s.rest = nil
	}
	return whole
}

// A ring keeps the end of a stream.
type ring struct{ tail []byte }

func (r *ring) add(chunk []byte) {
	if len(chunk) > maxErrorText {
		chunk = chunk[len(chunk)-maxErrorText:]
	}
	r.tail = append(r.tail, chunk...)
	if over := len(r.tail) - maxErrorText; over > 0 {
		r.tail = append(r.tail[:0], r.tail[over:]...)
	}
}
