package git

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"

	"github.com/deckhand-dev/deckhand/runner/internal/address"
	"github.com/deckhand-dev/deckhand/runner/internal/httpclient"
)

// A service is a command of a git server.
type service string

const (
	uploadPack  service = "git-upload-pack"
	receivePack service = "git-receive-pack"
)

// A transport reaches the server of one repository.
type transport interface {
	// open begins a session with a service.
	open(context.Context, service) (packSession, error)
}

// A packSession is one session with a service: the server lists its refs, gets one request, and answers.
type packSession interface {
	refs() *packp.AdvRefs
	// ask sends a request with its length, or -1 if that is not known, and returns the answer.
	ask(ctx context.Context, body io.Reader, length int64) (io.ReadCloser, error)
	Close() error
}

const (
	// maxRefs bounds the list of a server's refs, in bytes.
	maxRefs = 64 << 20
	// idleTimeout is how long a server may be silent. While it works on a pack it sends progress every few seconds.
	idleTimeout = 5 * time.Minute
	// connectTimeout is how long connecting may take.
	connectTimeout = 30 * time.Second
)

// errSilent means that a server was idle for longer than idleTimeout.
var errSilent = errors.New("the server has been silent for too long")

// dial connects to a server; the connection has an idle timeout.
func dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := address.DialContext(&net.Dialer{Timeout: connectTimeout})(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return newIdleTimeoutConn(conn, idleTimeout), nil
}

// refused returns the error for a host whose address is not reached; nil for any other error.
func (l location) refused(err error) error {
	no, is := errors.AsType[*address.RefusedError](err)
	if !is {
		return nil
	}
	return Refused("%s is not reached: %s.", l.text, printable(no.Error()))
}

// An idleTimeoutConn is a connection that is closed after a time without data in either
// direction. It sets no deadlines: its user may.
type idleTimeoutConn struct {
	net.Conn
	limit  time.Duration
	timer  *time.Timer
	silent atomic.Bool
}

func newIdleTimeoutConn(conn net.Conn, limit time.Duration) *idleTimeoutConn {
	c := &idleTimeoutConn{Conn: conn, limit: limit}
	c.timer = time.AfterFunc(limit, func() {
		c.silent.Store(true)
		_ = conn.Close() // reads and writes fail
	})
	return c
}

// noteActivity resets the timer after a read or write.
func (c *idleTimeoutConn) noteActivity(n int, err error) (int, error) {
	switch {
	case err == nil:
		c.timer.Reset(c.limit)
	case c.silent.Load():
		err = errSilent
	}
	return n, err
}

func (c *idleTimeoutConn) Read(p []byte) (int, error)  { return c.noteActivity(c.Conn.Read(p)) }
func (c *idleTimeoutConn) Write(p []byte) (int, error) { return c.noteActivity(c.Conn.Write(p)) }

func (c *idleTimeoutConn) Close() error {
	c.timer.Stop()
	return c.Conn.Close()
}

// clientName is the name that servers and the git of the workspace see.
const clientName = "deckhand"

// An httpTransport speaks git's smart protocol over HTTP.
type httpTransport struct {
	at     location
	basic  string // of the header Authorization; empty: none
	client *http.Client
}

func newHTTPTransport(at location, c credentials, bundle []byte) (transport, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(bundle) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			return nil, fmt.Errorf("reading the certificates of the system: %w", err)
		}
		if !pool.AppendCertsFromPEM(bundle) {
			return nil, Refused("The CA bundle has no certificate in it that can be read: it must be PEM, beginning with -----BEGIN CERTIFICATE-----.")
		}
		config.RootCAs = pool
	}
	t := httpclient.Transport(dial)
	t.TLSClientConfig, t.TLSHandshakeTimeout = config, connectTimeout
	t.DisableCompression = true // packs are compressed, and bounds are of what was sent
	return &httpTransport{at: at, basic: c.basic(), client: httpclient.New(t)}, nil
}

// An httpSession is a session of two requests.
type httpSession struct {
	*httpTransport
	service    service
	advertised *packp.AdvRefs
}

func (t *httpTransport) open(ctx context.Context, s service) (packSession, error) {
	res, err := t.do(ctx, http.MethodGet, "/info/refs?service="+string(s), nil)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if want := "application/x-" + string(s) + "-advertisement"; res.Header.Get("Content-Type") != want {
		return nil, Refused("What answers at %s is no git server (its answer is %q): check that the URL is the clone URL of a repository.", t.at.text, printable(res.Header.Get("Content-Type")))
	}
	advertised, err := readRefs(res.Body)
	if err != nil {
		return nil, err
	}
	return &httpSession{httpTransport: t, service: s, advertised: advertised}, nil
}

// readRefs reads a server's list of refs; for an empty repository there are none.
func readRefs(body io.Reader) (*packp.AdvRefs, error) {
	advertised := packp.NewAdvRefs()
	err := advertised.Decode(io.LimitReader(body, maxRefs))
	if err != nil && !errors.Is(err, packp.ErrEmptyAdvRefs) {
		return nil, refusalOf(fmt.Errorf("reading the refs of the git server: %w", err))
	}
	return advertised, nil
}

func (h *httpSession) refs() *packp.AdvRefs { return h.advertised }

func (h *httpSession) Close() error {
	h.client.CloseIdleConnections()
	return nil
}

func (h *httpSession) ask(ctx context.Context, body io.Reader, length int64) (io.ReadCloser, error) {
	res, err := h.do(ctx, http.MethodPost, "/"+string(h.service), func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(body), length
		r.Header.Set("Content-Type", "application/x-"+string(h.service)+"-request")
		r.Header.Set("Accept", "application/x-"+string(h.service)+"-result")
	})
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}

// do sends a request, and makes an error of every answer but the wanted one.
func (t *httpTransport) do(ctx context.Context, method, path string, fill func(*http.Request)) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, t.at.scheme+"://"+t.at.host+t.at.path+path, nil)
	if err != nil {
		return nil, fmt.Errorf("asking the git server: %w", err)
	}
	r.Header.Set("User-Agent", "git/"+clientName) // some servers answer only to a git
	if t.basic != "" {
		r.Header.Set("Authorization", t.basic)
	}
	if fill != nil {
		fill(r)
	}
	res, err := t.client.Do(r)
	if err != nil {
		return nil, t.connectError(err)
	}
	if res.StatusCode == http.StatusOK {
		return res, nil
	}
	said, _ := io.ReadAll(io.LimitReader(res.Body, maxWords))
	return nil, errors.Join(t.statusError(res, string(said)), res.Body.Close())
}

// connectError explains why there is no answer.
func (t *httpTransport) connectError(err error) error {
	if bad, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return Refused("%s has a certificate that is not trusted (%s): if it is of a CA of your own, name that as the CA bundle.", t.at.text, printable(bad.Err.Error()))
	}
	if refused := t.at.refused(err); refused != nil {
		return refused
	}
	if why, ok := tlsRefusal(err); ok {
		return Refused("%s cannot be reached by TLS (%s): check the scheme, the host and the port of the URL.", t.at.text, printable(why))
	}
	if sent, ok := errors.AsType[*url.Error](err); ok {
		err = sent.Err // without the URL of the service, which says no more than ours
	}
	return fmt.Errorf("reaching %s: %w", t.at.text, err)
}

// tlsRefusal returns why a TLS handshake failed permanently: the server does not use TLS, or ended the handshake with
// an alert. Of the alerts only an internal error may be transient.
func tlsRefusal(err error) (string, bool) {
	if errors.Is(err, http.ErrSchemeMismatch) {
		return "the server speaks HTTP without TLS", true
	}
	if header, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return header.Msg, true
	}
	alert, ok := errors.AsType[*net.OpError](err)
	if !ok || alert.Op != "remote error" || alert.Err.Error() == "tls: internal error" {
		return "", false
	}
	return alert.Err.Error(), true
}

// isTransient reports whether the same request may succeed later.
func isTransient(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusLocked, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false
	}
	return status < 400 || status >= 500
}

// statusError explains an answer other than 200.
func (t *httpTransport) statusError(res *http.Response, said string) error {
	switch code := res.StatusCode; {
	case code >= 300 && code < 400:
		return Refused("%s redirects to %s, and no redirect is followed, so that credentials go nowhere else: if that is right, make it the URL of the repository.", t.at.text, target(res))
	case code == http.StatusUnauthorized && t.basic == "":
		return Refused("%s asks for credentials, and there are none: name a Secret of type kubernetes.io/basic-auth.", t.at.text)
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return Refused("%s does not accept the credentials for this (%s): check that the token in the Secret is valid and may do it.", t.at.text, printable(res.Status+" "+said))
	case code == http.StatusNotFound, code == http.StatusGone:
		return Refused("There is no repository at %s, or the credentials may not see it (%s): check the URL and the Secret.", t.at.text, printable(res.Status))
	case code == http.StatusRequestEntityTooLarge:
		return Refused("%s does not take as much as was sent (%s): raise its limit, or have the agent leave less behind.", t.at.text, printable(res.Status))
	case !isTransient(code):
		return Refused("%s refuses the request (%s): check the URL, and a proxy on the way to it.", t.at.text, printable(res.Status+" "+said))
	default:
		return fmt.Errorf("%s answered %s", t.at.text, printable(res.Status+" "+said))
	}
}

// target returns where a redirect leads, as the URL of a repository.
func target(res *http.Response) string {
	to, err := res.Location()
	if err != nil {
		return "nowhere"
	}
	path, _, _ := strings.Cut(to.Path, "/info/refs")
	return printable((&url.URL{Scheme: to.Scheme, Host: to.Host, Path: path}).String())
}

const (
	headsPrefix = "refs/heads/"
	tagsPrefix  = "refs/tags/"
)

// minAbbreviation is the minimum length of an abbreviated commit, in digits.
const minAbbreviation = 4

// A cloneRequest is the request of a clone.
type cloneRequest struct {
	wants []plumbing.Hash
	// ref is the branch or tag that was named; empty: a commit was.
	ref plumbing.ReferenceName
	// commit is the commit to check out: the object of a tag, or the beginning of a commit's name in hexadecimal.
	commit string
	depth  int
	// notes are for the log.
	notes []string
}

// resolve returns the request for a revision: as in git, a branch before a tag before a
// commit.
func resolve(adv *packp.AdvRefs, revision string, depth int) (cloneRequest, error) {
	if format := adv.Capabilities.Get(capability.Capability("object-format")); len(format) > 0 && format[0] != "sha1" {
		return cloneRequest{}, Refused("The repository names its commits by %s; only sha1 is supported.", printable(format[0]))
	}
	if len(adv.References) == 0 {
		return cloneRequest{}, Refused("The repository is empty: push a first commit to it.")
	}
	if depth > 0 && !adv.Capabilities.Supports(capability.Shallow) {
		return cloneRequest{}, Refused("The git server cannot give a part of the history: leave the depth out.")
	}
	if revision == "" {
		return head(adv, depth)
	}
	for _, prefix := range []string{headsPrefix, tagsPrefix, "refs/", ""} {
		name := prefix + revision
		if at, ok := adv.References[name]; ok && strings.HasPrefix(name, "refs/") {
			return cloneRequest{wants: []plumbing.Hash{at}, ref: plumbing.ReferenceName(name), commit: at.String(), depth: depth}, nil
		}
	}
	if isCommit(revision) {
		return commitOf(adv, strings.ToLower(revision), depth), nil
	}
	return cloneRequest{}, unknownRevision(adv, revision)
}

// unknownRevision returns an error that lists existing branches.
func unknownRevision(adv *packp.AdvRefs, revision string) error {
	const most = 10
	var branches []string
	for name := range adv.References {
		if short, ok := strings.CutPrefix(name, headsPrefix); ok {
			branches = append(branches, printable(short))
		}
	}
	slices.Sort(branches)
	if len(branches) > most {
		branches = append(branches[:most], "and others")
	}
	return Refused("The repository has no branch, tag or commit %q. Its branches are: %s.", printable(revision), strings.Join(branches, ", "))
}

// head returns the request for the default branch.
func head(adv *packp.AdvRefs, depth int) (cloneRequest, error) {
	if adv.Head == nil {
		return cloneRequest{}, Refused("The repository has no default branch: name the revision to use.")
	}
	g := cloneRequest{wants: []plumbing.Hash{*adv.Head}, commit: adv.Head.String(), depth: depth}
	for _, link := range adv.Capabilities.Get(capability.SymRef) {
		if to, ok := strings.CutPrefix(link, "HEAD:"); ok && adv.References[to] == *adv.Head {
			g.ref = plumbing.ReferenceName(to)
		}
	}
	return g, nil
}

// isCommit reports whether a revision can be the name of a commit or its beginning.
func isCommit(revision string) bool {
	if len(revision) < minAbbreviation || len(revision) > 40 {
		return false
	}
	_, err := hex.DecodeString(revision + strings.Repeat("0", len(revision)%2))
	return err == nil
}

// commitOf returns the request for a commit: for the commit itself if the server allows
// that, otherwise for all branches and tags.
func commitOf(adv *packp.AdvRefs, revision string, depth int) cloneRequest {
	all := make([]plumbing.Hash, 0, len(adv.References))
	for name, at := range adv.References {
		if len(revision) == 40 && at.String() == revision {
			return cloneRequest{wants: []plumbing.Hash{at}, commit: revision, depth: depth}
		}
		if strings.HasPrefix(name, headsPrefix) || strings.HasPrefix(name, tagsPrefix) {
			all = append(all, at)
		}
	}
	if len(revision) == 40 && (adv.Capabilities.Supports(capability.AllowReachableSHA1InWant) || adv.Capabilities.Supports("allow-any-sha1-in-want")) {
		return cloneRequest{wants: []plumbing.Hash{plumbing.NewHash(revision)}, commit: revision, depth: depth}
	}
	g := cloneRequest{wants: all, commit: revision}
	if depth > 0 {
		g.notes = []string{"The git server gives a commit only with all of its history, so the depth has no effect"}
	}
	return g
}
