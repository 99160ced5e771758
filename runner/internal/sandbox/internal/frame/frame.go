package frame

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A Kind is what a frame is about.
type Kind byte

// The kinds of frames, by who sends them.
const (
	// The runner, as the first of a connection.
	Session  Kind = 's' // the connection that the others live by
	Start    Kind = 'S' // a message: run this; all other frames are about it
	Describe Kind = 'd' // say what you are

	// The runner, about a process.
	Stdin      Kind = 'i'
	StdinClose Kind = 'I'
	Kill       Kind = 'k'

	// A supervisor, to its server.
	AskCause Kind = 'y' // why was the command killed: answered by a Kill with the cause

	// The sandbox.
	Welcome     Kind = 'w' // the session is open
	Memory      Kind = 'm' // of a session: one byte, whether memory is nearly used up
	Started     Kind = 'b'
	Refused     Kind = 'r' // a message: it does not run
	Credit      Kind = 'c' // so many more bytes of stdin may be sent
	Stdout      Kind = 'o'
	Stderr      Kind = 'e'
	Control     Kind = '3'
	Exit        Kind = 'x' // a message: how it ended; the last of a connection
	Description Kind = 'D' // a message
)

// Max is how many bytes a frame carries.
const Max = 64<<10 - headerSize

// Window is how many bytes of stdin may be under way before the sandbox has said
// that they reached the program.
const Window = 256 << 10

const headerSize = 5 // the kind, and the length in big-endian order

// ErrProtocol means that what was read is not what this package writes.
var ErrProtocol = errors.New("the far end does not keep to the protocol")

// A Frame is one piece of what is said.
type Frame struct {
	Kind Kind
	Data []byte
}

// A Buffer is the memory of one reader.
type Buffer [headerSize + Max]byte

// Read reads one frame. Its data is in b, until b is used again.
func Read(r io.Reader, b *Buffer) (Frame, error) {
	header := b[:headerSize]
	if _, err := io.ReadFull(r, header); err != nil {
		return Frame{}, err //nolint:wrapcheck // io.EOF says that the far end is done
	}
	kind, size := Kind(header[0]), binary.BigEndian.Uint32(header[1:])
	if !kind.known() {
		return Frame{}, fmt.Errorf("%w: no frame is of kind %#x", ErrProtocol, byte(kind))
	}
	if size > Max {
		return Frame{}, fmt.Errorf("%w: a frame of %d bytes", ErrProtocol, size)
	}
	data := b[headerSize : headerSize+size]
	if _, err := io.ReadFull(r, data); err != nil {
		return Frame{}, fmt.Errorf("reading a frame: %w", noEOF(err))
	}
	return Frame{Kind: kind, Data: data}, nil
}

// noEOF makes an end within a frame one that nobody takes for the end of all.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// known are the kinds that there are.
func (k Kind) known() bool {
	switch k {
	case Session, Start, Describe, Stdin, StdinClose, Kill, AskCause,
		Welcome, Memory, Started, Refused, Credit, Stdout, Stderr, Control, Exit, Description:
		return true
	}
	return false
}

// encode lays a frame out in b.
func encode(b *Buffer, kind Kind, data []byte) []byte {
	b[0] = byte(kind)
	binary.BigEndian.PutUint32(b[1:], uint32(len(data))) //nolint:gosec // at most Max
	n := copy(b[headerSize:], data)
	return b[:headerSize+n]
}
