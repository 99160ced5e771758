package frame

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/internal/shared/clock"
)

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
