package networkcheck

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deckhand-dev/deckhand/internal/shared/clock"
)

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// serving starts a Server on loopback, which ends when stop is called.
func serving(t *testing.T) (s *Server, stop func()) {
	t.Helper()
	s = newServer(listen(t), listen(t), clock.Now)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Start(ctx)
	}()
	stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	return s, stop
}

// checking returns a Checker of an address on loopback.
func checking(at net.Addr) *Checker {
	c := New(fmt.Sprintf("operator:%d", portOf(at)), clock.Now)
	c.lookup = func(context.Context, string) ([]string, error) { return []string{"127.0.0.1"}, nil }
	return c
}

// blocked is the error of a connection that a network refuses.
func blocked(err error) error {
	return &net.OpError{Op: "dial", Net: "tcp", Err: err}
}

// Rows of the truth table of the design, with a Server that listens on both ports. The error
// is what the network makes of a connection to the closed port.
func TestCheckOfAServer(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want State
	}{
		"it connects":                            {nil, Open},
		"no answer":                              {blocked(context.DeadlineExceeded), Closed},
		"no answer, by a deadline of the socket": {blocked(os.ErrDeadlineExceeded), Closed},
		"no answer for as long as the kernel":    {blocked(syscall.ETIMEDOUT), Closed},
		"refused, as where nothing listens":      {blocked(syscall.ECONNREFUSED), Closed},
		"reset":                                  {blocked(syscall.ECONNRESET), Closed},
		"prohibited by a router":                 {blocked(syscall.EHOSTUNREACH), Closed},
		"no network, by a router":                {blocked(syscall.ENETUNREACH), Closed},
		"refused by the own machine":             {blocked(syscall.EPERM), Closed},
		"refused by the own kernel":              {blocked(syscall.EACCES), Closed},
		"no local port is free":                  {blocked(syscall.EADDRNOTAVAIL), Unknown},
		"no file descriptor is free":             {blocked(syscall.EMFILE), Unknown},
		"too little memory":                      {blocked(syscall.ENOBUFS), Unknown},
		"the kernel has no room for connections": {blocked(syscall.EAGAIN), Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := serving(t)
			c := checking(s.open.Addr())
			c.dial = func(ctx context.Context, address string) (net.Conn, error) {
				if address == s.closed.Addr().String() && tc.err != nil {
					return nil, tc.err
				}
				return dialTCP(ctx, address)
			}
			f := c.Check(t.Context())
			if f.State != tc.want || (f.Err != nil) != (tc.want == Unknown) {
				t.Errorf("%+v, want %s", f, tc.want)
			}
		})
	}
}

// What does not listen during the whole round is never Closed.
func TestAPortThatMayNotListenIsNotClosed(t *testing.T) {
	refused := blocked(syscall.ECONNREFUSED)
	for name, prepare := range map[string]func(t *testing.T) *Checker{
		"the operator is down": func(t *testing.T) *Checker {
			s, stop := serving(t)
			stop()
			return checking(s.open.Addr())
		},
		"its closed port does not listen": func(t *testing.T) *Checker {
			s, _ := serving(t)
			_ = s.closed.Close()
			return checking(s.open.Addr())
		},
		"its closed port is not reached by itself": func(t *testing.T) *Checker {
			s := newServer(listen(t), listen(t), clock.Now)
			s.dial = func(context.Context, string) (net.Conn, error) { return nil, blocked(context.DeadlineExceeded) }
			go s.Start(t.Context())
			return checking(s.open.Addr())
		},
		"it ends during the round": func(t *testing.T) *Checker {
			s, stop := serving(t)
			c := checking(s.open.Addr())
			c.dial = func(ctx context.Context, address string) (net.Conn, error) {
				if address == s.closed.Addr().String() {
					stop()
					return nil, refused
				}
				return dialTCP(ctx, address)
			}
			return c
		},
		"it starts again during the round": func(t *testing.T) *Checker {
			before, stop := serving(t)
			after, _ := serving(t)
			c := checking(before.open.Addr())
			at := before.open.Addr().String()
			c.dial = func(ctx context.Context, address string) (net.Conn, error) {
				if address == before.closed.Addr().String() {
					stop()
					at = after.open.Addr().String()
					return nil, refused
				}
				return dialTCP(ctx, at)
			}
			return c
		},
		"it has no name": func(*testing.T) *Checker {
			c := checking(&net.TCPAddr{Port: 1})
			c.lookup = func(_ context.Context, host string) ([]string, error) {
				return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
			}
			return c
		},
		"its name has no address": func(*testing.T) *Checker {
			c := checking(&net.TCPAddr{Port: 1})
			c.lookup = func(context.Context, string) ([]string, error) { return nil, nil }
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			if f := prepare(t).Check(t.Context()); f.State != Unknown || f.Err == nil {
				t.Errorf("%+v, want Unknown", f)
			}
		})
	}
}

func TestAnotherProgramIsNotTheOperator(t *testing.T) {
	const nonce = "NONCE"
	for name, line := range map[string]string{
		"it ends the connection":     "",
		"HTTP":                       "HTTP/1.1 400 Bad Request\r\n\r\n",
		"a line without an end":      `{"networkCheckNonce":"NONCE"`,
		"an echo":                    `{"networkCheckNonce":"NONCE"}` + "\n",
		"an answer of before":        `{"networkCheckNonce":"old","process":"p","closed":20472}` + "\n",
		"no process":                 `{"networkCheckNonce":"NONCE","closed":20472}` + "\n",
		"a low port":                 `{"networkCheckNonce":"NONCE","process":"p","closed":443}` + "\n",
		"no port":                    `{"networkCheckNonce":"NONCE","process":"p","closed":70000}` + "\n",
		"a line that is too long":    `{"networkCheckNonce":"NONCE","process":"p","closed":20472,"x":"` + strings.Repeat("x", maxLine) + `"}` + "\n",
		"the open port is its own":   `{"networkCheckNonce":"NONCE","process":"p","closed":OPEN}` + "\n",
		"it does not reach its port": `{"networkCheckNonce":"NONCE","process":"p","closed":20472,"problem":"timeout"}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			l := listen(t)
			go func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					var q question
					_ = receive(conn, &q)
					_, _ = conn.Write([]byte(strings.NewReplacer(nonce, q.Nonce, "OPEN", fmt.Sprint(portOf(l.Addr()))).Replace(line)))
					_ = conn.Close()
				}
			}()
			c := checking(l.Addr())
			c.dial = func(ctx context.Context, address string) (net.Conn, error) {
				if address != l.Addr().String() {
					return nil, blocked(syscall.ECONNREFUSED)
				}
				return dialTCP(ctx, address)
			}
			if f := c.Check(t.Context()); f.State != Unknown {
				t.Errorf("%+v, want Unknown", f)
			}
		})
	}
}

func TestAnAttemptThatEndsTellsNothing(t *testing.T) {
	s, _ := serving(t)
	ctx, cancel := context.WithCancel(t.Context())
	c := checking(s.open.Addr())
	c.dial = func(within context.Context, address string) (net.Conn, error) {
		if address == s.closed.Addr().String() {
			cancel()
			<-within.Done()
			return nil, blocked(context.DeadlineExceeded)
		}
		return dialTCP(within, address)
	}
	if f := c.Check(ctx); f.State != Unknown {
		t.Errorf("%+v, want Unknown", f)
	}
}

// One address that is reached is enough for Open; otherwise one that is closed is enough.
func TestSeveralAddresses(t *testing.T) {
	lost := errors.New("lost")
	for name, tc := range map[string]struct {
		found []Finding
		want  State
	}{
		"none":                   {nil, Unknown},
		"one is gone":            {[]Finding{{Closed, nil}, unknown(lost)}, Closed},
		"one is open":            {[]Finding{{Closed, nil}, {Open, nil}}, Open},
		"one is open, one gone":  {[]Finding{unknown(lost), {Open, nil}}, Open},
		"both are closed":        {[]Finding{{Closed, nil}, {Closed, nil}}, Closed},
		"nothing is known":       {[]Finding{unknown(lost), unknown(lost)}, Unknown},
		"nothing is known of it": {[]Finding{unknown(lost)}, Unknown},
	} {
		f := merge(tc.found)
		if f.State != tc.want || (f.Err != nil) != (tc.want == Unknown) {
			t.Errorf("%s: %+v, want %s", name, f, tc.want)
		}
	}
}

// A fakeNetwork has an operator whose closed port is as each round says, in order; the last
// says it for all that follow.
type fakeNetwork struct {
	rounds []State
	asked  int
}

func (n *fakeNetwork) checker() *Checker {
	return &Checker{
		address: "operator:20471", now: clock.Now, dial: n.dial,
		lookup: func(context.Context, string) ([]string, error) {
			n.asked++
			return []string{"10.0.0.1"}, nil
		},
	}
}

func (n *fakeNetwork) dial(_ context.Context, address string) (net.Conn, error) {
	state := n.rounds[min(n.asked, len(n.rounds))-1]
	isClosedPort := strings.HasSuffix(address, ":20472")
	if state == Unknown || isClosedPort && state == Closed {
		return nil, blocked(syscall.ECONNREFUSED)
	}
	own, other := net.Pipe()
	if !isClosedPort {
		go func() {
			var q question
			_ = receive(other, &q)
			_ = send(other, answer{Nonce: q.Nonce, Process: "p", Closed: 20472})
		}()
	}
	return own, nil
}

// Policies take effect late, and the operator may be away for a while.
func TestAwait(t *testing.T) {
	for name, tc := range map[string]struct {
		rounds []State
		want   State
		after  time.Duration
	}{
		"enforced from the beginning":              {[]State{Closed}, Closed, 0},
		"enforced after two seconds":               {[]State{Open, Open, Closed}, Closed, 2 * time.Second},
		"no connection at all before it":           {[]State{Open, Unknown, Closed}, Closed, 2 * time.Second},
		"never enforced":                           {[]State{Open}, Open, awaitTimeout},
		"no operator":                              {[]State{Unknown}, Unknown, awaitTimeout},
		"the operator is away, and comes too late": {append(slices.Repeat([]State{Unknown}, 16), Closed), Unknown, awaitTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &fakeNetwork{rounds: tc.rounds}
				began := clock.Now()
				f := n.checker().Await(t.Context())
				if took := clock.Now().Sub(began); f.State != tc.want || took != tc.after {
					t.Errorf("%+v after %s, want %s after %s", f, took, tc.want, tc.after)
				}
			})
		})
	}
}

func TestAwaitEndsWithTheAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), awaitTimeout/2)
		defer cancel()
		n := &fakeNetwork{rounds: []State{Open}}
		if f := n.checker().Await(ctx); f.State != Unknown || !errors.Is(f.Err, context.DeadlineExceeded) {
			t.Errorf("%+v", f)
		}
	})
}

func TestPortOf(t *testing.T) {
	for address, want := range map[string]int32{
		"deckhand-check.deckhand-system.svc:20471": 20471, "[fd00::1]:20471": 20471, "x:65534": 65534,
		"": 0, "x": 0, ":20471": 0, "x:": 0, "x:0": 0, "x:65535": 0, "x:70000": 0, "x:http": 0, "x:-1": 0,
	} {
		got, err := PortOf(address)
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d, %v; want %d", address, got, err, want)
		}
	}
}

// Any pod may connect to the operator: what it sends, or does not send, ends in time.
func TestAClientThatDoesNotAskGetsNoAnswer(t *testing.T) {
	s, _ := serving(t)
	for name, text := range map[string]string{
		"HTTP":        "GET / HTTP/1.1\r\n\r\n",
		"no nonce":    "{}\n",
		"a long line": strings.Repeat("x", 2*maxLine),
	} {
		conn, err := dialTCP(t.Context(), s.open.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write([]byte(text))
		var a answer
		if err := receive(conn, &a); err == nil {
			t.Errorf("%s: %+v", name, a)
		}
		_ = conn.Close()
	}
	if f := checking(s.open.Addr()).Check(t.Context()); f.State != Open {
		t.Errorf("afterwards: %+v", f)
	}
}
