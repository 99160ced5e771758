package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/frame"
)

// Bounds of a description; the far end is not trusted with more.
const (
	maxKilled = 64
	maxPath   = 1024
)

// Describe says what the sandbox is. It waits until the sandbox has tried its
// confinement, which takes about a second after its start.
func (c *Client) Describe(ctx context.Context) (Description, error) {
	conn, _, err := c.dialInSession(ctx)
	if err != nil {
		return Description{}, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	conn.SetTimeout(describeTimeout)
	d, err := describe(conn)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return Description{}, fmt.Errorf("asking the sandbox what it is: %w", err)
	}
	return d, nil
}

func describe(conn *frame.Conn) (Description, error) {
	var d Description
	if err := conn.Send(frame.Describe, nil); err != nil {
		return d, err //nolint:wrapcheck // Describe wraps it
	}
	first, err := conn.Expect(frame.Description)
	if err == nil {
		err = conn.Message(first, &d)
	}
	if err != nil {
		return Description{}, err
	}
	return d, d.check()
}

// check holds a description to its bounds and to the words that there are.
func (d *Description) check() error {
	words := func(s string, more ...string) bool {
		return s == Enforced || s == Unenforced || slices.Contains(more, s)
	}
	k := d.Confinement
	if !words(k.Process) || !words(k.Files) || !words(k.Network, PortsOnly) || k.LandlockABI < 0 || k.LandlockABI > 1000 {
		return fmt.Errorf("%w: a confinement of %.100q", frame.ErrProtocol, fmt.Sprint(k))
	}
	if len(d.Shell) > maxPath || len(d.Python) > maxPath || len(d.Killed) > maxKilled {
		return fmt.Errorf("%w: a description out of bounds", frame.ErrProtocol)
	}
	for i, one := range d.Killed {
		d.Killed[i] = Killed{ID: short(one.ID), Args0: short(one.Args0)}
	}
	return nil
}

// short bounds a name that is only shown.
func short(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), maxID)], "")
}
