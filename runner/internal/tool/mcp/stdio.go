package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/deckhand-dev/deckhand/internal/shared/quote"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
)

// A stdioConn is a connection over the standard streams of a program: one message a
// line. Lines that are no messages are dropped: programs print what they like.
//
// It is not the IOTransport of the library (go-sdk v1.8.0), even behind a reader
// that bounds and filters lines:
//
//   - Write holds a lock while it writes, and does not end with its context
//     (mcp/transport.go:768). A program that does not read would hold up every call
//     for ever.
//   - A message that cannot be decoded ends the connection (mcp/transport.go:697). Of
//     17 hostile answers in hostile_test.go three would end the session.
//   - The requests of an array are kept until each was answered
//     (mcp/transport.go:619), which the guard does for [maxAnswering] at a time only.
//
// To keep the bounds, lines would be read and messages written here nevertheless.
type stdioConn struct {
	process  sandbox.Process
	incoming chan jsonrpc.Message
	outgoing chan outgoingMessage
	log      func(string)

	closing  atomic.Bool
	closed   chan struct{}
	finished chan struct{} // closed when the program was ended
	ended    chan struct{} // closed when the program says no more

	mu      sync.Mutex
	stderr  ring // the end of stderr
	failure error
	probe   jsonrpc.ID // a question that old servers do not know

	dropped int // lines that were dropped; of readOutput alone
}

// An outgoingMessage is a message on its way to the program.
type outgoingMessage struct {
	text []byte
	sent chan error
}

// newStdioConn makes a connection to a program.
func newStdioConn(p sandbox.Process, log func(string)) *stdioConn {
	c := &stdioConn{
		process: p, log: log,
		incoming: make(chan jsonrpc.Message), outgoing: make(chan outgoingMessage, maxAnswering),
		closed: make(chan struct{}), finished: make(chan struct{}), ended: make(chan struct{}),
	}
	go c.readOutput()
	go c.writeMessages()
	return c
}

// SessionID implements [mcp.Connection]; there is none.
func (*stdioConn) SessionID() string { return "" }

// Read implements [mcp.Connection].
func (c *stdioConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-c.incoming:
		return m, nil
	case <-c.ended:
		return nil, io.EOF
	case <-c.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements [mcp.Connection]. A program that does not read delays the message,
// but Write returns when ctx ends.
func (c *stdioConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return fmt.Errorf("writing a message: %w", err)
	}
	if m, ok := msg.(*jsonrpc.Request); ok && m.Method == "server/discover" {
		c.boundDiscovery(m.ID)
	}
	l := outgoingMessage{text: append(text, '\n'), sent: make(chan error, 1)}
	select {
	case c.outgoing <- l:
	case <-c.closed:
		return io.ErrClosedPipe
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-l.sent:
		if err != nil {
			c.awaitEnd(ctx)
		}
		return err
	case <-c.closed:
		return io.ErrClosedPipe
	case <-ctx.Done():
		return ctx.Err()
	}
}

// awaitEnd waits a moment for the program to end. A program that does not read any more most likely ends; then its exit
// status and its last output are known.
func (c *stdioConn) awaitEnd(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, endGrace)
	defer cancel()
	select {
	case <-c.ended:
	case <-c.closed:
	case <-ctx.Done():
	}
}

// boundDiscovery answers server/discover itself if the server does not: servers that do not know the method may drop
// it.
func (c *stdioConn) boundDiscovery(id jsonrpc.ID) {
	c.mu.Lock()
	c.probe = id
	c.mu.Unlock()
	time.AfterFunc(discoveryTimeout, func() {
		c.mu.Lock()
		waiting := c.probe == id
		c.mu.Unlock()
		if waiting {
			_ = c.push(&jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no answer"}})
		}
	})
}

// Close implements [mcp.Connection]. It does not wait for the program, since the
// library holds a lock meanwhile.
func (c *stdioConn) Close() error {
	if c.closing.CompareAndSwap(false, true) {
		close(c.closed)
		go c.endProcess()
	}
	return nil
}

// endProcess closes the program's standard input, and kills it if it does not end.
func (c *stdioConn) endProcess() {
	defer close(c.finished)
	go func() { _ = c.process.Stdin().Close() }() // it may be full
	timer := time.NewTimer(closeTimeout)
	defer timer.Stop()
	select {
	case <-c.ended:
	case <-timer.C:
	}
	_ = c.process.Kill()
}

// writeMessages writes messages, one at a time.
func (c *stdioConn) writeMessages() {
	for {
		select {
		case l := <-c.outgoing:
			_, err := c.process.Stdin().Write(l.text)
			l.sent <- err
		case <-c.closed:
			return
		case <-c.ended:
			return
		}
	}
}

// readOutput reads what the program prints, to its end.
func (c *stdioConn) readOutput() {
	defer close(c.ended)
	var lines splitter
	broken := false
	for chunk := range c.process.Output() {
		switch {
		case chunk.Stream == sandbox.Stderr:
			c.mu.Lock()
			c.stderr.add(chunk.Data)
			c.mu.Unlock()
		case chunk.Stream == sandbox.Stdout && !broken:
			if err := lines.add(chunk.Data, c.line); err != nil {
				broken = true
				c.fail(err)
			}
		}
	}
}

// line handles one line of the program's output: messages are passed on, other lines are dropped.
func (c *stdioConn) line(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	if text[0] != '{' && text[0] != '[' {
		c.dropLine(text)
		return nil
	}
	messages, err := decode(text)
	if err != nil {
		c.dropLine(text)
	}
	for _, m := range messages {
		if err := c.push(m); err != nil {
			return err
		}
	}
	return nil
}

// push passes on a message to Read.
func (c *stdioConn) push(m jsonrpc.Message) error {
	if r, ok := m.(*jsonrpc.Response); ok {
		c.mu.Lock()
		if r.ID == c.probe {
			c.probe = jsonrpc.ID{}
		}
		c.mu.Unlock()
	}
	select {
	case c.incoming <- m:
		return nil
	case <-c.closed:
		return errOver
	}
}

// dropLine logs the first few lines that are not messages.
func (c *stdioConn) dropLine(text []byte) {
	const enough = 3
	if c.dropped++; c.dropped <= enough {
		c.log(fmt.Sprintf("a line on its standard output is no message of the protocol and was dropped: %q", quote.Line(string(clipBytes(text)), 120)))
	}
}

// fail ends a program whose output cannot be read.
func (c *stdioConn) fail(err error) {
	if errors.Is(err, errOver) {
		return // it is ending already
	}
	c.mu.Lock()
	c.failure = err
	c.mu.Unlock()
	_ = c.Close()
}

// endReason returns how the program ended, or nil.
func (c *stdioConn) endReason() error {
	c.mu.Lock()
	failure, stderr := c.failure, quote.Line(string(c.stderr.tail), maxErrorText)
	c.mu.Unlock()
	if failure != nil {
		return failure
	}
	select {
	case <-c.ended:
	default:
		if stderr != "" {
			return fmt.Errorf("it last wrote to its standard error: %s", stderr)
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	exit, err := c.process.Wait(ctx)
	if err != nil {
		return fmt.Errorf("it ended: %w", err)
	}
	return errors.New(describeExit(exit, stderr))
}

// describeExit describes how a program ended.
func describeExit(e sandbox.Exit, stderr string) string {
	how := fmt.Sprintf("it ended with exit code %d", e.Code)
	switch {
	case e.Cause != sandbox.Exited && e.Detail != "":
		how = "it ended: " + e.Detail
	case e.Signal != "":
		how = "it was ended by the signal " + e.Signal
	}
	if stderr != "" {
		how += "; its last words: " + stderr
	}
	return how
}

func clipBytes(b []byte) []byte { return b[:min(len(b), 4*maxQuote)] }
