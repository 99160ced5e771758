package sandbox

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/frame"
)

// A farEnd answers connections after the first, which is the session, as a
// sandbox does that somebody has taken over.
func fakeServer(t *testing.T, answer func(c *frame.Conn, session *frame.Conn)) *Client {
	t.Helper()
	dir, err := os.MkdirTemp("", "far") //nolint:usetesting // the name of a socket has to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		var session *frame.Conn
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c := frame.New(conn)
			first, err := c.Receive()
			if err == nil && first.Kind == frame.Session {
				session = c
				c.Send(frame.Welcome, nil)
				continue
			}
			go func() {
				defer conn.Close()
				if first.Kind == frame.Start {
					c.Message(first, &Command{})
				}
				answer(c, session)
			}()
		}
	}()
	c := Dial(filepath.Join(dir, "s"))
	t.Cleanup(func() { c.Close() })
	return c
}

func TestClientRefusesMalformedFrames(t *testing.T) {
	started := func(rest func(c *frame.Conn)) func(c, _ *frame.Conn) {
		return func(c, _ *frame.Conn) {
			c.Send(frame.Started, nil)
			rest(c)
			c.Receive() // until the runner has had enough
		}
	}
	for name, answer := range map[string]func(c, _ *frame.Conn){
		"no frame at all":         started(func(c *frame.Conn) { c.Write([]byte("HTTP/1.1 200 OK\r\n")) }),
		"a frame too large":       started(func(c *frame.Conn) { c.Write([]byte{'o', 255, 255, 255, 255}) }),
		"a frame of the runner's": started(func(c *frame.Conn) { c.Send(frame.Stdin, []byte("x")) }),
		"credit never sent for":   started(func(c *frame.Conn) { c.SendCredit(1) }),
		"credit in a wrong shape": started(func(c *frame.Conn) { c.Send(frame.Credit, nil) }),
		"an end for no cause":     started(func(c *frame.Conn) { c.SendMessage(frame.Exit, Exit{Cause: "Bored"}) }),
		"an end that was lost":    started(func(c *frame.Conn) { c.SendMessage(frame.Exit, Exit{Cause: SandboxLost}) }),
		"an end that is no end":   started(func(c *frame.Conn) { c.SendMessage(frame.Exit, []int{1}) }),
		"fewer than no bytes":     started(func(c *frame.Conn) { c.SendMessage(frame.Exit, Exit{Cause: Exited, Dropped: -1}) }),
	} {
		t.Run(name, func(t *testing.T) {
			p, err := fakeServer(t, answer).Start(t.Context(), Command{Args: []string{"x"}})
			if err != nil {
				t.Fatal(err)
			}
			for range p.Output() {
			}
			got, err := p.Wait(t.Context())
			if !errors.Is(err, frame.ErrProtocol) || got.Cause != SandboxLost {
				t.Errorf("Wait: %+v, %v", got, err)
			}
		})
	}
	t.Run("something else than a start", func(t *testing.T) {
		c := fakeServer(t, func(c, _ *frame.Conn) { c.Send(frame.Stdout, []byte("x")) })
		if _, err := c.Start(t.Context(), Command{Args: []string{"x"}}); !errors.Is(err, frame.ErrProtocol) {
			t.Errorf("Start: %v", err)
		}
	})
}

func TestClientEnforcesTheOutputLimit(t *testing.T) {
	c := fakeServer(t, func(c, _ *frame.Conn) {
		c.Send(frame.Started, nil)
		c.Send(frame.Stdout, []byte("1234"))
		c.Send(frame.Stderr, []byte("5678"))
		c.SendMessage(frame.Exit, Exit{Cause: Exited, Dropped: 1})
	})
	p, err := c.Start(t.Context(), Command{Args: []string{"x"}, Limits: Limits{Output: 5}})
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for chunk := range p.Output() {
		got.Write(chunk.Data)
	}
	exit, err := p.Wait(t.Context())
	if diff := cmp.Diff(Exit{Cause: Exited, Dropped: 4}, exit); err != nil || diff != "" || got.String() != "12345" {
		t.Errorf("%q, %v, exit -want +got:\n%s", got.String(), err, diff)
	}
}

func TestClientEndsAProcessThatTheServerDoesNotEnd(t *testing.T) {
	c := fakeServer(t, func(c, _ *frame.Conn) {
		c.Send(frame.Started, nil)
		for err := error(nil); err == nil; { // whatever the runner says
			err = c.Send(frame.Stdout, make([]byte, 1000))
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	p, err := c.Start(ctx, Command{Args: []string{"x"}})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if got, err := p.Wait(t.Context()); err != nil || got.Cause != Canceled { // nobody takes the output
		t.Errorf("Wait: %+v, %v", got, err)
	}
}

func TestWhyASandboxWasLost(t *testing.T) {
	for name, tc := range map[string]struct {
		says []byte
		want string
	}{
		"for memory":           {[]byte{1}, lostMemory},
		"not for memory":       {nil, lostRestarted},
		"no longer for memory": {[]byte{1, 0}, lostRestarted},
	} {
		t.Run(name, func(t *testing.T) {
			c := fakeServer(t, func(c, session *frame.Conn) {
				c.Send(frame.Started, nil)
				for _, one := range tc.says {
					session.Send(frame.Memory, []byte{one})
				}
				session.Close()
			})
			p, err := c.Start(t.Context(), Command{Args: []string{"x"}})
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Wait(t.Context())
			if err != nil || got.Cause != SandboxLost || got.Detail != tc.want {
				t.Errorf("Wait: %+v, %v", got, err)
			}
		})
	}
}

func TestASandboxThatEndsItselfSaysWhy(t *testing.T) {
	for why, want := range map[Ending]string{
		SupervisorsKilled: "because its processes killed the supervisors of commands again and again;",
		ProcessesLeft:     "because processes of ended commands could not be killed;",
		ProcessesUnknown:  "because its process table could not be read;",
		200:               "because its processes could not be controlled;",
	} {
		t.Run(want, func(t *testing.T) {
			c := fakeServer(t, func(c, session *frame.Conn) {
				c.Send(frame.Started, nil)
				session.Send(frame.Memory, []byte{1})
				session.Send(frame.Ending, []byte{byte(why)})
				session.Close()
			})
			p, err := c.Start(t.Context(), Command{Args: []string{"x"}})
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Wait(t.Context())
			if err != nil || got.Cause != SandboxLost || !strings.Contains(got.Detail, want) {
				t.Errorf("Wait: %+v, %v", got, err)
			}
		})
	}
}

func TestASandboxThatIsLostInAStart(t *testing.T) {
	c := fakeServer(t, func(_, session *frame.Conn) { session.Close() })
	_, err := c.Start(t.Context(), Command{Args: []string{"x"}})
	if lost, ok := errors.AsType[*LostError](err); !ok || lost.Detail != lostRestarted {
		t.Errorf("Start: %v", err)
	}
}

func TestADescriptionOutOfBounds(t *testing.T) {
	good := Description{Shell: "/bin/sh", Confinement: Confinement{Process: Enforced, Files: Enforced, Network: PortsOnly, LandlockABI: 4}}
	with := func(change func(d *Description)) Description {
		d := good
		change(&d)
		return d
	}
	for name, d := range map[string]Description{
		"a word that is none":     with(func(d *Description) { d.Confinement.Network = "Perfect" }),
		"a word for another part": with(func(d *Description) { d.Confinement.Files = PortsOnly }),
		"no word":                 {},
		"a path without end":      with(func(d *Description) { d.Shell = strings.Repeat("x", maxPath+1) }),
		"too much that was killed": with(func(d *Description) {
			d.Killed = make([]Killed, maxKilled+1)
		}),
		"a version that is none": with(func(d *Description) { d.Confinement.LandlockABI = -1 }),
	} {
		t.Run(name, func(t *testing.T) {
			c := fakeServer(t, func(c, _ *frame.Conn) { c.SendMessage(frame.Description, d) })
			if got, err := c.Describe(t.Context()); !errors.Is(err, frame.ErrProtocol) {
				t.Errorf("Describe: %+v, %v", got, err)
			}
		})
	}
	long := with(func(d *Description) { d.Killed = []Killed{{ID: strings.Repeat("x", 10000)}} })
	got, err := fakeServer(t, func(c, _ *frame.Conn) { c.SendMessage(frame.Description, long) }).Describe(t.Context())
	if err != nil || len(got.Killed[0].ID) != maxID {
		t.Errorf("Describe: %d, %v", len(got.Killed[0].ID), err)
	}
}

func TestASandboxThatDoesNotComeUp(t *testing.T) {
	c := Dial("/nonexistent/s")
	c.connectTimeout = 10 * time.Millisecond
	for _, dialInSession := range []func() error{
		func() error { _, err := c.Start(t.Context(), Command{Args: []string{"x"}}); return err },
		func() error { _, err := c.Describe(t.Context()); return err },
	} {
		if err := dialInSession(); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "/nonexistent/s") {
			t.Errorf("%v", err)
		}
	}
}
