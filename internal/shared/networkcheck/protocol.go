package networkcheck

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
)

// A question is what a Checker sends to the open port, and an answer is what it gets: each
// is a line of JSON.
type question struct {
	// Nonce is random. The answer repeats it, so that it is about this moment.
	Nonce string `json:"networkCheckNonce"`
}

type answer struct {
	Nonce string `json:"networkCheckNonce"`
	// Process identifies the process that listens on both ports.
	Process string `json:"process"`
	// Closed is the number of the closed port.
	Closed int `json:"closed"`
	// Lost counts the connections that the server's kernel has lost because it was flooded. A
	// connection to the closed port that is lost shows nothing.
	Lost uint64 `json:"lost,omitempty"`
	// Problem is why the closed port cannot be tried; empty: it listens.
	Problem string `json:"problem,omitempty"`
}

// maxLine is the most bytes of a question or an answer.
const maxLine = 1 << 10

func send(conn net.Conn, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	_, err = conn.Write(append(line, '\n'))
	return err //nolint:wrapcheck // it names the connection
}

func receive(conn net.Conn, v any) error {
	line, err := bufio.NewReader(io.LimitReader(conn, maxLine)).ReadBytes('\n')
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("reading a line of %s: %w", conn.RemoteAddr(), io.ErrUnexpectedEOF)
	}
	if err != nil {
		return err //nolint:wrapcheck // it names the connection
	}
	if err := json.Unmarshal(line, v); err != nil {
		return fmt.Errorf("reading a line of %s: %w", conn.RemoteAddr(), err)
	}
	return nil
}
