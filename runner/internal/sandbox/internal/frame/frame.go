package frame

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A Kind is the type of a frame.
type Kind byte

// The kinds of frames, by sender.
const (
	// Sent by the runner, as the first frame of a connection.
	Session  Kind = 's' // open a session: all commands end with this connection
	Start    Kind = 'S' // a message: run a command, which all other frames concern
	Describe Kind = 'd' // request the description

	// Sent by the runner for a process.
	Stdin      Kind = 'i'
	StdinClose Kind = 'I'
	Kill       Kind = 'k'

	// Sent by a supervisor to the server.
	AskCause Kind = 'y' // why was the command killed: answered by a Kill with the cause

	// Sent by the sandbox.
	Welcome     Kind = 'w' // the session is open
	Memory      Kind = 'm' // in a session: one byte, whether memory is nearly used up
	Ending      Kind = 'E' // in a session: one byte, why the sandbox ends itself
	Started     Kind = 'b' // by a supervisor also to the server, even if the start was refused
	Refused     Kind = 'r' // a message: the command was not started
	Credit      Kind = 'c' // how many more bytes of stdin may be sent
	Stdout      Kind = 'o'
	Stderr      Kind = 'e'
	Control     Kind = '3'
	Exit        Kind = 'x' // a message: how it ended; the last of a connection
	Description Kind = 'D' // a message
)

// Max is the largest size of the data of a frame.
const Max = 64<<10 - headerSize

// Window is how many bytes of stdin may be sent before the program has read them.
const Window = 256 << 10

const headerSize = 5 // the kind, and the length in big-endian order

// ErrProtocol means that the peer violated the protocol.
var ErrProtocol = errors.New("the peer violated the protocol")

// A Frame is the unit of the protocol.
type Frame struct {
	Kind Kind
	Data []byte
}

// A Buffer is the memory of one reader.
type Buffer [headerSize + Max]byte

// Read reads one frame. Its data is valid until b is used again.
func Read(r io.Reader, b *Buffer) (Frame, error) {
	header := b[:headerSize]
	if _, err := io.ReadFull(r, header); err != nil {
		return Frame{}, err //nolint:wrapcheck // io.EOF is the end of the connection
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

// noEOF converts io.EOF within a frame to io.ErrUnexpectedEOF.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// known reports whether the kind exists.
func (k Kind) known() bool {
	switch k {
	case Session, Start, Describe, Stdin, StdinClose, Kill, AskCause,
		Welcome, Memory, Ending, Started, Refused, Credit, Stdout, Stderr, Control, Exit, Description:
		return true
	}
	return false
}

// encode encodes a frame in b.
func encode(b *Buffer, kind Kind, data []byte) []byte {
	b[0] = byte(kind)
	binary.BigEndian.PutUint32(b[1:], uint32(len(data))) //nolint:gosec // at most Max
	n := copy(b[headerSize:], data)
	return b[:headerSize+n]
}
