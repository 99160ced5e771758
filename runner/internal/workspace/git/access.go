package git

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"unicode"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"

	"github.com/deckhand-dev/deckhand/runner/internal/redact"
)

// Access is how to reach a repository.
type Access struct {
	// URL is the repository's: https, http, ssh, or user@host:path.
	URL string
	// Credentials is the directory of a mounted Secret: of username and password
	// (kubernetes.io/basic-auth), or of ssh-privatekey (kubernetes.io/ssh-auth) and
	// known_hosts. Empty: none.
	Credentials string
	// CABundle has certificates, in PEM, that https trusts in addition to those of the system.
	CABundle []byte
}

// The keys of a Secret of credentials.
const (
	keyUsername   = "username"
	keyPassword   = "password"
	keyPrivateKey = "ssh-privatekey"
	keyKnownHosts = "known_hosts"
)

// maxCredential bounds one key of a Secret, in bytes; known_hosts of a large
// site is the longest.
const maxCredential = 1 << 20

// credentials are the credentials of a Secret for one URL.
type credentials struct {
	username, password string
	privateKey         []byte
	knownHosts         string // a path
}

// A Remote is the server of one repository.
type Remote struct {
	at        location
	transport transport
	secrets   *redact.Redactor
}

// NewRemote returns a Remote. It reads the credentials and does not connect.
func NewRemote(a Access) (*Remote, error) {
	at, err := parseURL(a.URL)
	if err != nil {
		return nil, err
	}
	c, err := readCredentials(a.Credentials, at)
	if err != nil {
		return nil, err
	}
	r := &Remote{at: at, secrets: c.redactor()}
	if at.scheme == "ssh" {
		r.transport, err = newSSHTransport(at, c)
	} else {
		r.transport, err = newHTTPTransport(at, c, a.CABundle)
	}
	if err != nil {
		return nil, redactError(err, r.secrets)
	}
	return r, nil
}

// URL returns the repository's, without credentials.
func (r *Remote) URL() string { return r.at.text }

// readCredentials reads the credentials that the scheme of the URL needs.
func readCredentials(dir string, at location) (credentials, error) {
	switch {
	case at.scheme == "ssh":
		return sshCredentials(dir, at)
	case dir == "":
		return credentials{}, nil
	}
	password, err := readKey(dir, keyPassword)
	if err != nil {
		return credentials{}, during("reading the git credentials", err)
	}
	if len(password) == 0 {
		return credentials{}, Refused("The Secret for %s has no key %q, which an http or https URL needs: use a Secret of type kubernetes.io/basic-auth, with a token as its password.", at.text, keyPassword)
	}
	name, err := readKey(dir, keyUsername)
	if err != nil {
		return credentials{}, during("reading the git credentials", err)
	}
	// GitHub, GitLab and others take any name with a token, but not an empty one.
	c := credentials{username: cmp.Or(oneLine(name), at.user, "git"), password: oneLine(password)}
	if strings.ContainsAny(c.username, ":\n\r") || strings.ContainsAny(c.password, "\n\r") {
		return credentials{}, Refused("The Secret for %s has a line break, or its %s a colon, where neither can be: write the values again, without them.", at.text, keyUsername)
	}
	return c, nil
}

func sshCredentials(dir string, at location) (credentials, error) {
	if dir == "" {
		return credentials{}, Refused("%s is reached by ssh, which needs a Secret of type kubernetes.io/ssh-auth with the keys %q and %q: name one, or use an https URL.", at.text, keyPrivateKey, keyKnownHosts)
	}
	key, err := readKey(dir, keyPrivateKey)
	if err != nil {
		return credentials{}, during("reading the git credentials", err)
	}
	hosts, err := readKey(dir, keyKnownHosts)
	if err != nil {
		return credentials{}, during("reading the git credentials", err)
	}
	switch {
	case len(key) == 0:
		return credentials{}, Refused("The Secret for %s has no key %q, which an ssh URL needs: use a Secret of type kubernetes.io/ssh-auth, or an https URL.", at.text, keyPrivateKey)
	case len(strings.TrimSpace(string(hosts))) == 0:
		return credentials{}, Refused("The Secret for %s has no key %q, so the server cannot be verified: add to it what \"ssh-keyscan %s\" prints, once you have compared it with what the provider publishes.", at.text, keyKnownHosts, hostOnly(at))
	}
	return credentials{username: cmp.Or(at.user, "git"), privateKey: key, knownHosts: dir + "/" + keyKnownHosts}, nil
}

func hostOnly(at location) string {
	host := at.address()
	return strings.Trim(host[:strings.LastIndex(host, ":")], "[]")
}

// readKey returns one key of a mounted Secret; nil if it does not exist.
func readKey(dir, key string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.Open(key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxCredential+1))
	if err == nil && len(data) > maxCredential {
		return nil, Refused("The key %q of the Secret for git is larger than %d bytes; that is no credential.", key, maxCredential)
	}
	return data, err
}

// oneLine returns a value without the line break that an editor or echo appended.
func oneLine(data []byte) string { return strings.TrimRight(string(data), "\r\n") }

// basic returns the value of the header Authorization; empty for none.
func (c credentials) basic() string {
	if c.password == "" {
		return ""
	}
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(c.username+":"+c.password))
}

// redactor returns a redactor of all forms in which the credentials are sent, and of each line of a key, because an
// error may quote one.
func (c credentials) redactor() *redact.Redactor {
	known := redact.New()
	for _, value := range []string{c.password, c.username + ":" + c.password, strings.TrimPrefix(c.basic(), "Basic ")} {
		if c.password != "" {
			known.Add(redact.Secret{Name: "git", Key: keyPassword, Value: []byte(value)})
		}
	}
	if len(c.privateKey) > 0 {
		known.Add(redact.Secret{Name: "git", Key: keyPrivateKey, Value: c.privateKey})
	}
	for line := range bytes.Lines(c.privateKey) {
		if !bytes.HasPrefix(line, []byte("-----")) {
			known.Add(redact.Secret{Name: "git", Key: keyPrivateKey, Value: line})
		}
	}
	return known
}

// A location is where a repository is.
type location struct {
	scheme string // http, https or ssh
	host   string // with its port, where one was given
	user   string // empty where none was given
	path   string // as it stands in the URL; of ssh: as the server's command gets it
	text   string // for people and for the workspace; without a password
}

const urlForms = "use https://host/path, http://host/path, ssh://user@host/path or user@host:path"

// scp is ssh's short form, user@host:path.
var scp = regexp.MustCompile(`^([A-Za-z0-9._-]+)@([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]):([^:].*)$`)

// Name returns the URL of a repository in canonical form: different spellings may have the same name.
func Name(raw string) (string, error) {
	at, err := parseURL(raw)
	return at.text, err
}

func parseURL(raw string) (location, error) {
	if strings.ContainsFunc(raw, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return location{}, Refused("The URL of the git repository has a space or a control character in it; remove it.")
	}
	if m := scp.FindStringSubmatch(raw); m != nil && !strings.Contains(raw, "://") {
		return validate(location{scheme: "ssh", user: m[1], host: m[2], path: m[3], text: raw})
	}
	u, err := url.Parse(raw)
	if err != nil { // its text has the URL, and so perhaps a password
		return location{}, Refused("The URL of the git repository cannot be read: %s.", urlForms)
	}
	switch scheme := strings.ToLower(u.Scheme); scheme {
	case "http", "https", "ssh":
		return fromURL(u, scheme)
	case "":
		return location{}, Refused("The URL of the git repository names no scheme: %s.", urlForms)
	default:
		return location{}, Refused("The URL of the git repository begins with %q, which is not allowed: %s.", printable(scheme), urlForms)
	}
}

func fromURL(u *url.URL, scheme string) (location, error) {
	if _, has := u.User.Password(); has {
		return location{}, Refused("The URL of the git repository has a password in it, which every reader of the Agent can see: remove it and put it into a Secret of type kubernetes.io/basic-auth.")
	}
	if u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" {
		return location{}, Refused("The URL of the git repository has more in it than a host and a path: %s.", urlForms)
	}
	l := location{scheme: scheme, host: u.Host, user: u.User.Username(), path: strings.TrimRight(u.EscapedPath(), "/")}
	shown := url.URL{Scheme: scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	if scheme == "ssh" {
		l.path = strings.TrimPrefix(u.Path, "/~") // ssh://host/~user/x is the shell's ~user/x
		if l.path != u.Path {
			l.path = "~" + l.path
		}
		shown.User = u.User
	}
	l.text = shown.String()
	return validate(l)
}

// validate refuses a location without a host or path, or that the command on the server could parse as an option.
func validate(l location) (location, error) {
	if name, _, _ := strings.Cut(l.host, ":"); name == "" || strings.Trim(l.path, "/") == "" {
		return location{}, Refused("The URL of the git repository names no host or no path: %s.", urlForms)
	}
	if strings.HasPrefix(l.path, "-") || strings.HasPrefix(l.host, "-") {
		return location{}, Refused("The URL of the git repository has a host or a path that begins with \"-\"; that is an option, not a name.")
	}
	return l, nil
}

// address returns the host and port for ssh.
func (l location) address() string {
	if _, _, err := net.SplitHostPort(l.host); err == nil {
		return l.host
	}
	return net.JoinHostPort(strings.Trim(l.host, "[]"), "22")
}

// An sshTransport speaks git's protocol to a command on the server.
type sshTransport struct {
	at     location
	config *ssh.ClientConfig
}

func newSSHTransport(at location, c credentials) (transport, error) {
	key, err := ssh.ParsePrivateKey(c.privateKey)
	if _, locked := errors.AsType[*ssh.PassphraseMissingError](err); locked {
		return nil, Refused("The key %q of the Secret for %s has a passphrase, which cannot be typed: create a deploy key without one.", keyPrivateKey, at.text)
	}
	if err != nil { // its text may quote the key
		return nil, Refused("The key %q of the Secret for %s is no private key of ssh: it begins with -----BEGIN OPENSSH PRIVATE KEY----- or the like, and ends with a line break.", keyPrivateKey, at.text)
	}
	known, err := knownhosts.NewDB(c.knownHosts)
	if err != nil {
		return nil, Refused("The key %q of the Secret for %s cannot be read as such (%s): write into it what \"ssh-keyscan %s\" prints, once you have compared it with what the provider publishes.", keyKnownHosts, at.text, printable(err.Error()), hostOnly(at))
	}
	algorithms := known.HostKeyAlgorithms(at.address())
	if len(algorithms) == 0 {
		return nil, unknownHost(at)
	}
	return &sshTransport{at: at, config: &ssh.ClientConfig{
		User:              c.username,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(key)},
		HostKeyCallback:   known.HostKeyCallback(),
		HostKeyAlgorithms: algorithms,
		ClientVersion:     "SSH-2.0-" + clientName,
	}}, nil
}

func unknownHost(at location) error {
	return Refused("The key %q of the Secret for %s does not have the host %s: add what \"ssh-keyscan %s\" prints, once you have compared it with what the provider publishes.", keyKnownHosts, at.text, at.host, hostOnly(at))
}

// An sshSession is a session with one command.
type sshSession struct {
	at         location
	client     *ssh.Client
	session    *ssh.Session
	in         io.WriteCloser
	out        io.Reader
	stderr     *remoteMessages
	advertised *packp.AdvRefs
	unwatch    func() bool
}

func (t *sshTransport) open(ctx context.Context, s service) (packSession, error) {
	conn, err := dial(ctx, "tcp", t.at.address())
	if refused := t.at.refused(err); refused != nil {
		return nil, refused
	}
	if err != nil {
		return nil, fmt.Errorf("reaching %s: %w", t.at.text, err)
	}
	p := &sshSession{at: t.at, stderr: &remoteMessages{}}
	p.unwatch = context.AfterFunc(ctx, func() { _ = conn.Close() }) // ssh knows no contexts
	if err := t.begin(conn, p, s); err != nil {
		p.unwatch()
		_ = conn.Close()
		return nil, errors.Join(ctx.Err(), err)
	}
	return p, nil
}

// begin logs in, starts the command and reads its refs.
func (t *sshTransport) begin(conn net.Conn, p *sshSession, s service) error {
	c, channels, requests, err := ssh.NewClientConn(conn, t.at.address(), t.config)
	if err != nil {
		return t.loginError(err)
	}
	p.client = ssh.NewClient(c, channels, requests)
	if p.session, err = p.client.NewSession(); err != nil {
		if closed, ok := errors.AsType[*ssh.OpenChannelError](err); ok && closed.Reason != ssh.ResourceShortage {
			return Refused("%s opens no session (%s): check that the URL is the clone URL of a repository.", t.at.text, printable(closed.Error()))
		}
		return fmt.Errorf("opening a session on %s: %w", t.at.text, err)
	}
	p.session.Stderr = p.stderr
	in, inErr := p.session.StdinPipe()
	out, outErr := p.session.StdoutPipe()
	if err := errors.Join(inErr, outErr, p.session.Start(string(s)+" "+quote(t.at.path))); err != nil {
		return fmt.Errorf("starting %s on %s: %w", s, t.at.text, err)
	}
	p.in, p.out = in, out
	if p.advertised, err = readRefs(out); err != nil {
		return p.commandError(err)
	}
	return nil
}

// loginError explains why the login failed.
func (t *sshTransport) loginError(err error) error {
	if none, ok := errors.AsType[*ssh.AlgorithmNegotiationError](err); ok {
		return Refused("%s has no algorithm for %s in common with Deckhand (it has %s): have it offer a current one.", t.at.text, none.What, printable(strings.Join(none.RequestedAlgorithms, ", ")))
	}
	switch {
	case knownhosts.IsHostUnknown(err):
		return unknownHost(t.at)
	case knownhosts.IsHostKeyChanged(err):
		return Refused("The host %s shows another key than the one in %q of the Secret: if its provider has changed it, write the new one into the Secret; otherwise another server answers there.", t.at.host, keyKnownHosts)
	case strings.Contains(err.Error(), "unable to authenticate"):
		return Refused("%s does not accept the key of the Secret for the user %q: add its public half as a deploy key, with the right to write if branches are to be published.", t.at.text, t.config.User)
	default:
		return fmt.Errorf("logging in to %s: %w", t.at.text, err)
	}
}

// commandError explains why a command did not answer, by its standard error. A server that refuses access writes the
// reason there and ends.
func (s *sshSession) commandError(err error) error {
	if errors.Is(err, errSilent) {
		return err
	}
	_ = s.session.Wait() // what it complained of is then complete; its status says nothing more
	if said := s.stderr.String(); said != "" {
		return Refused("%s refuses access (%s): check the URL and what the key of the Secret may do.", s.at.text, said)
	}
	return err
}

func (s *sshSession) refs() *packp.AdvRefs { return s.advertised }

func (s *sshSession) ask(_ context.Context, body io.Reader, _ int64) (io.ReadCloser, error) {
	_, err := io.Copy(s.in, body)
	if err := errors.Join(err, s.in.Close()); err != nil {
		return nil, s.commandError(fmt.Errorf("sending to %s: %w", s.at.text, err))
	}
	return io.NopCloser(s.out), nil
}

// Close ends the command, even if it still has output.
func (s *sshSession) Close() error {
	s.unwatch()
	_ = s.session.Close() // it has ended already if all went well
	return s.client.Close()
}

// quote returns a path as one word of a shell.
func quote(path string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(path) + "'"
}

// remoteMessages has the beginning of a server's messages for users.
type remoteMessages struct {
	mu   sync.Mutex
	text []byte
}

func (r *remoteMessages) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text = append(r.text, p[:min(len(p), maxWords-len(r.text))]...)
	return len(p), nil
}

func (r *remoteMessages) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return printable(string(r.text))
}
