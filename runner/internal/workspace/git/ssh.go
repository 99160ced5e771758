package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
)

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

// commandError explains why a command did not answer: what it wrote to its standard error.
// A server that refuses access says so there and ends.
func (p *sshSession) commandError(err error) error {
	if errors.Is(err, errSilent) {
		return err
	}
	_ = p.session.Wait() // what it complained of is then complete; its status says nothing more
	if said := p.stderr.String(); said != "" {
		return Refused("%s refuses access (%s): check the URL and what the key of the Secret may do.", p.at.text, said)
	}
	return err
}

func (p *sshSession) refs() *packp.AdvRefs { return p.advertised }

func (p *sshSession) ask(_ context.Context, body io.Reader, _ int64) (io.ReadCloser, error) {
	_, err := io.Copy(p.in, body)
	if err := errors.Join(err, p.in.Close()); err != nil {
		return nil, p.commandError(fmt.Errorf("sending to %s: %w", p.at.text, err))
	}
	return io.NopCloser(p.out), nil
}

// Close ends the command, whatever it still has to say.
func (p *sshSession) Close() error {
	p.unwatch()
	_ = p.session.Close() // it has ended already if all went well
	return p.client.Close()
}

// quote is a path as one word of a shell.
func quote(path string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(path) + "'"
}

// remoteMessages are the beginning of what a server writes for people.
type remoteMessages struct {
	mu   sync.Mutex
	text []byte
}

func (c *remoteMessages) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text = append(c.text, p[:min(len(p), maxWords-len(c.text))]...)
	return len(p), nil
}

func (c *remoteMessages) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return printable(string(c.text))
}
