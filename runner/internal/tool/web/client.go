package web

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/deckhand-dev/deckhand/internal/shared/quote"
	"github.com/deckhand-dev/deckhand/internal/shared/weburl"
	"github.com/deckhand-dev/deckhand/runner/internal/httpclient"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

const (
	userAgent    = "Deckhand"
	maxRedirects = 5
	dialTimeout  = 10 * time.Second
)

// An addressError means that the address of a connection is not allowed.
type addressError struct{ addr netip.Addr }

func (e *addressError) Error() string {
	return fmt.Sprintf("the address %s may not be reached", e.addr)
}

// newClient returns a client that connects only to allowed hosts and addresses.
func (o Options) newClient() (*http.Client, hosts, error) {
	r, err := o.readTargets()
	if err != nil {
		return nil, nil, err
	}
	dial := o.dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout, ControlContext: r.control, Resolver: o.resolver}).DialContext
	}
	transport := httpclient.Transport(dial)
	transport.Proxy = nil // a proxy would connect to addresses that are not allowed
	// If a reused connection is broken, net/http repeats a request that has an
	// Idempotency-Key, and the server may ignore that key.
	transport.DisableKeepAlives = true
	return &http.Client{Transport: transport, CheckRedirect: r.redirect}, r.hosts, nil
}

// control implements net.Dialer.ControlContext: it checks an address before the
// connection is made.
func (t targets) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("reading the address of a connection: %w", err)
	}
	if !t.allow(at.Addr()) {
		return &addressError{addr: at.Addr()}
	}
	return nil
}

// A redirectError means that a redirect was not followed.
type redirectError struct {
	to  *url.URL
	err error
}

func (e *redirectError) Error() string {
	return fmt.Sprintf("the redirect to %s is not followed: %v", show(e.to.Redacted()), e.err)
}

func (e *redirectError) Unwrap() error { return e.err }

var (
	errHops      = fmt.Errorf("there were more than %d", maxRedirects)
	errDowngrade = errors.New("it leads from https to http")
)

// redirect implements http.Client.CheckRedirect: it checks the next request like the
// first. Headers of the model are not sent to another origin.
func (t targets) redirect(next *http.Request, via []*http.Request) error {
	next.Header.Del("Referer") // a query may contain secrets
	to := *next.URL
	switch err := t.hosts.admit(next.URL); {
	case err != nil:
		return &redirectError{to: &to, err: err}
	case len(via) > maxRedirects:
		return &redirectError{to: &to, err: errHops}
	case via[len(via)-1].URL.Scheme == "https" && next.URL.Scheme == "http":
		return &redirectError{to: &to, err: errDowngrade}
	}
	for _, hop := range append(via[1:len(via):len(via)], next) {
		if !sameOrigin(hop.URL, via[0].URL) { // also if a later redirect returns to the origin
			strip(next.Header)
			break
		}
	}
	return nil
}

func sameOrigin(a, b *url.URL) bool {
	return a.Hostname() == b.Hostname() && port(a) == port(b)
}

// port returns the port of a URL. The default ports of http and https are equal: a
// redirect from https to http is refused elsewhere.
func port(u *url.URL) string {
	switch p := u.Port(); p {
	case "", "80", "443":
		return ""
	default:
		return p
	}
}

// strip removes headers that may contain credentials.
func strip(h http.Header) {
	for name := range h {
		switch strings.ToLower(name) {
		case "accept", "accept-language", "content-type", "user-agent":
		default:
			h.Del(name)
		}
	}
}

// A policyError means that the policy of the session does not allow the target of
// a redirect.
type policyError struct{ refused *tool.Error }

func (e *policyError) Error() string { return e.refused.Message }

// authorizing returns a client that follows a redirect only if the policy of the
// session allows a call that requests its target. args returns the arguments of that
// call. The checks of the client itself are first.
func authorizing(client *http.Client, call tool.Call, args func(*http.Request) any) *http.Client {
	if call.Session == nil {
		return client
	}
	judged := *client
	judged.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		if err := client.CheckRedirect(next, via); err != nil {
			return err
		}
		if refused := call.Session.Authorize(next.Context(), encode(args(next))); refused != nil {
			to := *next.URL
			return &redirectError{to: &to, err: &policyError{refused}}
		}
		return nil
	}
	return &judged
}

// encode returns arguments in canonical form.
func encode(args any) json.RawMessage {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(args) // strings and numbers only: cannot fail
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// hosts are the allowed hosts in the canonical form of package weburl. If it is
// empty all are allowed.
type hosts []string

// readHosts validates a list of hosts and returns it in canonical form.
func readHosts(list []string) (hosts, error) {
	var all hosts
	for _, entry := range list {
		suffix, wild := strings.CutPrefix(entry, "*.")
		name, err := weburl.Host(strings.Trim(suffix, "[]"))
		if err != nil {
			return nil, fmt.Errorf("%q is no host: write one such as api.example.com, or *.example.com for those below it, without scheme, port and path", entry)
		}
		if wild {
			name = "*." + name
		}
		all = append(all, name)
	}
	return all, nil
}

// A hostError means that a host is not allowed.
type hostError struct {
	host    string
	allowed hosts
}

func (e *hostError) Error() string {
	return fmt.Sprintf("this tool may not reach the host %s", e.host)
}

// check returns a hostError if a canonical name is not allowed.
func (h hosts) check(name string) error {
	matches := func(entry string) bool {
		if suffix, wild := strings.CutPrefix(entry, "*"); wild {
			return len(name) > len(suffix) && strings.HasSuffix(name, suffix)
		}
		return entry == name
	}
	if len(h) > 0 && !slices.ContainsFunc(h, matches) {
		return &hostError{host: name, allowed: h}
	}
	return nil
}

// A requestError means that the arguments are not a valid request.
type requestError struct{ problem string }

func (e *requestError) Error() string { return e.problem }

// target parses and checks a URL, and returns it in canonical form.
func (h hosts) target(raw string) (*url.URL, error) {
	u, err := weburl.Parse(raw)
	if err != nil {
		return nil, &requestError{err.Error()}
	}
	return u, h.check(u.Hostname())
}

// admit converts the target of a redirect to canonical form and checks its host.
func (h hosts) admit(u *url.URL) error {
	if err := weburl.Canonicalize(u); err != nil {
		return &requestError{err.Error()}
	}
	return h.check(u.Hostname())
}

const (
	defaultTimeout = 30 * time.Second
	maxTimeout     = 10 * time.Minute
)

// failed converts the error of a request to a result for the model. It returns an
// error only if the context of the call has ended.
func failed(ctx context.Context, to string, err error) (tool.Result, error) {
	if ctx.Err() != nil {
		return tool.Result{}, context.Cause(ctx)
	}
	to = show(to)
	var (
		redirected *redirectError
		wrong      *requestError
		host       *hostError
		addr       *addressError
	)
	switch {
	case errors.As(err, &redirected):
		return tool.Fail(fmt.Sprintf("%s was requested and answered, but %v", to, redirected), refusal(redirected.err)...), nil
	case errors.As(err, &wrong):
		return tool.Fail(fmt.Sprintf("'%s' cannot be requested: %s", to, wrong.problem)), nil
	case errors.As(err, &host), errors.As(err, &addr):
		return tool.Fail(fmt.Sprintf("%s was not requested: %v", to, refused(host, addr)), refusal(err)...), nil
	}
	return unreachable(to, err), nil
}

func refused(host *hostError, addr *addressError) error {
	if host != nil {
		return host
	}
	return addr
}

// refusal recommends what to do after an error of a check.
func refusal(err error) []string {
	var host *hostError
	var addr *addressError
	var policy *policyError
	switch {
	case errors.As(err, &policy):
		return policy.refused.Recommendations
	case errors.As(err, &host):
		return []string{"It may reach: " + show(strings.Join(host.allowed, ", ")), "Others are for the owner of this agent to allow."}
	case errors.As(err, &addr):
		return []string{
			"Only public addresses are reached, and those within the cluster that the owner of this agent allows by name.",
			"Do not try other ways to the same place: the address is judged, however it is written.",
		}
	case errors.Is(err, errDowngrade):
		return []string{"Request that URL itself if it does not matter that others can read along."}
	}
	return nil
}

// unreachable returns the failure for a request without a response.
func unreachable(to string, err error) tool.Result {
	var (
		dns  *net.DNSError
		cert *tls.CertificateVerificationError
		wrap *url.Error
		late net.Error
	)
	switch {
	case errors.Is(err, errSlow):
		return tool.Fail(to+" did not answer in time", "Ask for more time with timeoutSeconds, or for less.",
			"What the request was to change may have changed nevertheless: look before you repeat it.")
	case errors.As(err, &dns) && dns.IsNotFound:
		return tool.Fail(fmt.Sprintf("%s cannot be reached: there is no host %s", to, show(dns.Name)), "Check how the host is written.")
	case errors.As(err, &cert):
		return tool.Fail(fmt.Sprintf("%s cannot be reached: its certificate is not to be trusted: %s", to, show(cert.Err.Error())))
	case errors.As(err, &late) && late.Timeout():
		return tool.Fail(to+" cannot be reached: it did not take the connection in time", "Try it once more; it may be down.")
	}
	if errors.As(err, &wrap) {
		err = wrap.Err
	}
	return tool.Fail(fmt.Sprintf("%s cannot be reached: %s", to, show(err.Error())))
}

// shown bounds external text in a message, in bytes.
const shown = 300

// show returns external text for one line of a message.
func show(s string) string { return quote.Line(s, shown) }
