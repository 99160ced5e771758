package httpapi

import (
	"bufio"
	"errors"
	"io"
)

// maxLine bounds one line, and an answer that is not streamed.
const maxLine = 4 << 20

// Lines are the lines of a stream, each of bounded length.
type Lines struct {
	in      *bufio.Reader
	long    []byte // a line beyond the reader's buffer
	err     error  // why nothing more comes
	tooLong error
}

// Next is the next line; it stays valid until the one after it is asked for. At
// the end of the stream it is what is left, beside io.EOF; when the stream
// breaks, a piece of a line is worth nothing.
func (l *Lines) Next() ([]byte, error) {
	if l.err != nil {
		return nil, l.err
	}
	l.long = l.long[:0]
	for {
		piece, err := l.in.ReadSlice('\n')
		switch {
		case err == nil && len(l.long) == 0:
			return piece, nil
		case len(l.long)+len(piece) > maxLine:
			l.err = l.tooLong
			return nil, l.err
		}
		l.long = append(l.long, piece...)
		switch {
		case err == nil:
			return l.long, nil
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		}
		l.err = err
		if errors.Is(err, io.EOF) {
			return l.long, io.EOF
		}
		return nil, err
	}
}
