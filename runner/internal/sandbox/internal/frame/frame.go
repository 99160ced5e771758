// Package frame is the protocol between the runner and the sandbox: frames of a kind
// and at most 64 KiB.
//
// Larger or structured data is a message: bounded JSON in several frames of one kind,
// the last of which is empty. A reader holds at most one frame or message in memory.
package frame

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/internal/shared/clock"
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

// maxMessage bounds a message. It is larger than the kernel's default bound for the
// arguments and environment of a program.
const maxMessage = 2 << 20

// A Conn is one end of a connection. One goroutine may receive; any may send.
type Conn struct {
	net.Conn

	in Buffer

	mu  sync.Mutex // held while a frame or message is sent
	out Buffer
}

// New returns an end of a connection.
func New(c net.Conn) *Conn { return &Conn{Conn: c} }

// Receive waits for the next frame. Its data is valid until the next call.
func (c *Conn) Receive() (Frame, error) { return Read(c.Conn, &c.in) }

// Expect waits for a frame of one kind.
func (c *Conn) Expect(kind Kind) (Frame, error) {
	f, err := c.Receive()
	if err == nil && f.Kind != kind {
		err = fmt.Errorf("%w: %q where %q belongs", ErrProtocol, f.Kind, kind)
	}
	return f, err
}

// Send sends one frame of at most Max bytes.
func (c *Conn) Send(kind Kind, data []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.send(kind, data)
}

func (c *Conn) send(kind Kind, data []byte) error {
	if len(data) > Max {
		return fmt.Errorf("sending %d bytes in a frame: at most %d fit", len(data), Max)
	}
	_, err := c.Write(encode(&c.out, kind, data))
	return err //nolint:wrapcheck // callers wrap it
}

// SendMessage sends a value as a message.
func (c *Conn) SendMessage(kind Kind, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding a message: %w", err)
	}
	if len(data) > maxMessage {
		return fmt.Errorf("sending a message of %d bytes: at most %d are taken", len(data), maxMessage)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(data) > 0 {
		n := min(len(data), Max)
		if err := c.send(kind, data[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return c.send(kind, nil)
}

// Message reads the rest of a message after its first frame, and decodes it into v.
func (c *Conn) Message(first Frame, v any) error {
	kind, data := first.Kind, append([]byte(nil), first.Data...)
	for last := first; len(last.Data) > 0; {
		next, err := c.Expect(kind)
		if err != nil {
			return noEOF(err)
		}
		if len(data)+len(next.Data) > maxMessage {
			return fmt.Errorf("%w: a message of more than %d bytes", ErrProtocol, maxMessage)
		}
		data = append(data, next.Data...)
		last = next
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	return nil
}

// SendCredit allows the peer to send n more bytes of stdin.
func (c *Conn) SendCredit(n int) error {
	return c.Send(Credit, binary.BigEndian.AppendUint32(nil, uint32(n))) //nolint:gosec // at most Window
}

// ReadCredit decodes a frame of kind Credit.
func ReadCredit(f Frame) (int, error) {
	if len(f.Data) != 4 {
		return 0, fmt.Errorf("%w: a credit of %d bytes", ErrProtocol, len(f.Data))
	}
	n := binary.BigEndian.Uint32(f.Data)
	if n > Window {
		return 0, fmt.Errorf("%w: a credit for %d bytes", ErrProtocol, n)
	}
	return int(n), nil
}

// SetTimeout sets the deadline of reads and writes to d from now; zero: none.
func (c *Conn) SetTimeout(d time.Duration) {
	var until time.Time
	if d > 0 {
		until = clock.Now().Add(d)
	}
	_ = c.SetDeadline(until) // fails only on a connection that fails anyway
}
