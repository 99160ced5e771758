// Package networkcheck tests whether NetworkPolicies close ports to a pod. A [Server], in the operator, listens on two
// ports. The policies of runner pods allow only the first; a [Checker], in a runner, tries both.
//
// docs/designs/032-proof-of-network-policies.md describes each outcome.
package networkcheck

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Bounds of a round.
const (
	lookupTimeout = 3 * time.Second
	askTimeout    = 2 * time.Second
	// closedTimeout is long enough for three SYN packets, sent after 0, 1 and 3 seconds: a lost packet must not make an
	// open port look closed.
	closedTimeout = 3500 * time.Millisecond
)

// Times of Await.
const (
	// awaitTimeout is how long new rounds begin. The last one ends less than 11 seconds later.
	awaitTimeout = 15 * time.Second
	// pause is the time between rounds.
	pause = time.Second
)

// A State is the result of a round for the closed port.
type State string

// The states.
const (
	// Closed means that the closed port cannot be reached although the operator listens at it.
	Closed State = "Closed"
	// Open means that the closed port is reached.
	Open State = "Open"
	// Unknown means that the operator may not listen at the closed port, or that it was not tried.
	Unknown State = "Unknown"
)

// A Finding is a State, and the reason of an Unknown.
type Finding struct {
	State State
	Err   error // nil unless State is Unknown
}

func unknown(err error) Finding { return Finding{State: Unknown, Err: err} }

// A Checker tries the ports of a Server from another pod.
type Checker struct {
	// address is the host and the open port.
	address string
	lookup  func(ctx context.Context, host string) ([]string, error)
	dial    func(ctx context.Context, address string) (net.Conn, error)
	now     func() time.Time
}

// New returns a Checker of the Server at an address of the form host:port.
func New(address string, now func() time.Time) *Checker {
	return &Checker{address: address, lookup: lookupService, dial: dialTCP, now: now}
}

// Await checks until the closed port is closed, or until it has tried for 15 seconds: a
// NetworkPolicy may take effect some seconds after the start of a pod. It returns the last
// finding.
func (c *Checker) Await(ctx context.Context) Finding {
	for began := c.now(); ; {
		f := c.Check(ctx)
		if f.State == Closed || c.now().Sub(began) >= awaitTimeout {
			return f
		}
		select {
		case <-ctx.Done():
			return unknown(context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

// Check makes one round, at all addresses of the host in parallel. If the port is Open at one of them, the result is
// Open, because pods can reach it. Otherwise Closed at one of them is Closed.
func (c *Checker) Check(ctx context.Context) Finding {
	host, port, err := net.SplitHostPort(c.address)
	if err != nil {
		return unknown(fmt.Errorf("reading the address: %w", err))
	}
	finding, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	ips, err := c.lookup(finding, host)
	if err != nil {
		return unknown(err)
	}
	findings := make([]Finding, len(ips))
	var all sync.WaitGroup
	for i, ip := range ips {
		all.Go(func() { findings[i] = c.round(ctx, ip, port) })
	}
	all.Wait()
	return merge(findings)
}

// merge returns the finding of all addresses.
func merge(findings []Finding) Finding {
	var failed []error
	states := map[State]bool{}
	for _, f := range findings {
		states[f.State] = true
		failed = append(failed, f.Err)
	}
	switch {
	case states[Open]:
		return Finding{State: Open}
	case states[Closed]:
		return Finding{State: Closed}
	case len(findings) == 0:
		return unknown(errNoAddress)
	}
	return unknown(errors.Join(failed...))
}

var (
	errNoAddress    = errors.New("its name has no address")
	errOtherProcess = errors.New("it was restarted meanwhile")
	errFlooded      = errors.New("it was flooded with connections meanwhile")
	errForeign      = errors.New("another program answers")
	errNotListening = errors.New("it does not reach its own port")
)

// round makes a round at one address.
func (c *Checker) round(ctx context.Context, ip, port string) Finding {
	before, err := c.ask(ctx, ip, port)
	if err != nil {
		return unknown(err)
	}
	isOpen, err := c.reaches(ctx, net.JoinHostPort(ip, strconv.Itoa(before.Closed)))
	switch {
	case err != nil:
		return unknown(err)
	case isOpen:
		return Finding{State: Open}
	}
	after, err := c.ask(ctx, ip, port)
	switch {
	case err != nil:
		return unknown(err)
	case after.Lost != before.Lost:
		return unknown(fmt.Errorf("asking %s: %w", ip, errFlooded))
	case after.Process != before.Process || after.Closed != before.Closed:
		return unknown(fmt.Errorf("asking %s: %w", ip, errOtherProcess))
	}
	return Finding{State: Closed}
}

// ask asks the open port which port is closed. A nil error means that it listens.
func (c *Checker) ask(ctx context.Context, ip, port string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	conn, err := c.dial(ctx, net.JoinHostPort(ip, port))
	if err != nil {
		return answer{}, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(c.now().Add(askTimeout)) // only a closed connection has none
	q, a := question{Nonce: rand.Text()}, answer{}
	if err := send(conn, q); err != nil {
		return a, err
	}
	if err := receive(conn, &a); err != nil {
		return a, err
	}
	switch {
	case a.Nonce != q.Nonce || a.Process == "" || a.Closed < firstHighPort || a.Closed > lastPort || strconv.Itoa(a.Closed) == port:
		return a, fmt.Errorf("asking %s: %w", conn.RemoteAddr(), errForeign)
	case a.Problem != "":
		return a, fmt.Errorf("asking %s: %w: %s", conn.RemoteAddr(), errNotListening, a.Problem)
	}
	return a, nil
}

// reaches reports whether a connection is established. An error means that it was not tried.
func (c *Checker) reaches(ctx context.Context, address string) (bool, error) {
	trying, cancel := context.WithTimeout(ctx, closedTimeout)
	defer cancel()
	conn, err := c.dial(trying, address)
	switch {
	case err == nil:
		_ = conn.Close() // nothing was sent
		return true, nil
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case isRefusal(err):
		return false, nil
	}
	return false, err
}

// isRefusal reports whether the network refused a connection, or did not answer. Other errors
// are of this machine, for example that it has no free port.
func isRefusal(err error) bool {
	return slices.ContainsFunc(refusals, func(r error) bool { return errors.Is(err, r) })
}

var refusals = []error{
	context.DeadlineExceeded, os.ErrDeadlineExceeded, syscall.ETIMEDOUT, syscall.ECONNREFUSED, syscall.ECONNRESET,
	syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EACCES, syscall.EPERM,
}

// A question is the request of a Checker to the open port, and an answer is the response: each is a line of JSON.
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
	// Lost counts the connections that the server's kernel dropped because of too many. A dropped connection to the
	// closed port proves nothing.
	Lost uint64 `json:"lost,omitempty"`
	// Problem is why the closed port cannot be tried; empty: it listens.
	Problem string `json:"problem,omitempty"`
}

// maxLine is the maximum size of a question or an answer in bytes.
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

// lookupService resolves the name of a Service.
func lookupService(ctx context.Context, host string) ([]string, error) {
	conf, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the file
	}
	return net.DefaultResolver.LookupHost(ctx, absolute(host, string(conf))) //nolint:wrapcheck // it names the host
}

// absolute returns the absolute name of a Service whose name ends with .svc. With a relative name, a pod first looks up
// Services in its own namespace, and in a namespace called svc. The kubelet writes DOMAIN of the cluster and svc.DOMAIN as
// search domains; in a namespace called svc it writes svc.svc.DOMAIN, too. Others are of the cluster node.
func absolute(host, resolvConf string) string {
	service, is := strings.CutSuffix(host, ".svc")
	domains := searched(resolvConf)
	for _, domain := range domains {
		cluster, isServices := strings.CutPrefix(domain, "svc.")
		if is && isServices && slices.Contains(domains, cluster) && !strings.HasPrefix(cluster, "svc.") {
			return service + ".svc." + strings.TrimSuffix(cluster, ".") + "."
		}
	}
	return host
}

// searched returns the search domains of a resolv.conf.
func searched(resolvConf string) []string {
	var domains []string
	for line := range strings.Lines(resolvConf) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] == "search" {
			domains = fields[1:] // the last line counts
		}
	}
	return domains
}
