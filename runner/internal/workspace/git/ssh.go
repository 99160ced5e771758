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

// sshWire speaks git's protocol to a command on the server.
type sshWire struct {
	at     location
	config *ssh.ClientConfig
}

func overSSH(at location, c credentials) (wire, error) {
	key, err := ssh.ParsePrivateKey(c.privateKey)
	if _, locked := errors.AsType[*ssh.PassphraseMissingError](err); locked {
		return nil, Refused("The key %q of the Secret for %s has a passphrase, which cannot be typed: create a deploy key without one.", keyPrivateKey, at.text)
	}
	if err != nil { // its text may quote the key
		return nil, Refused("The key %q of the Secret for %s is no private key of ssh: it begins with -----BEGIN OPENSSH PRIVATE KEY----- or the like, and ends with a line break.", keyPrivateKey, at.text)
	}
	known, err := knownhosts.NewDB(c.knownHosts)
	if err != nil {
		return nil, Refused("The key %q of the Secret for %s cannot be read as such (%s): write into it what \"ssh-keyscan %s\" prints, once you have compared it with what the provider publishes.", keyKnownHosts, at.text, words(err.Error()), hostOnly(at))
	}
	algorithms := known.HostKeyAlgorithms(at.address())
	if len(algorithms) == 0 {
		return nil, unknownHost(at)
	}
	return &sshWire{at: at, config: &ssh.ClientConfig{
		User:              c.username,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(key)},
		HostKeyCallback:   known.HostKeyCallback(),
		HostKeyAlgorithms: algorithms,
		ClientVersion:     "SSH-2.0-" + agent,
	}}, nil
}

func unknownHost(at location) error {
	return Refused("The key %q of the Secret for %s does not have the host %s: add what \"ssh-keyscan %s\" prints, once you have compared it with what the provider publishes.", keyKnownHosts, at.text, at.host, hostOnly(at))
}

// sshTalk is a conversation with one command.
type sshTalk struct {
	at         location
	client     *ssh.Client
	session    *ssh.Session
	in         io.WriteCloser
	out        io.Reader
	complaints *complaints
	advertised *packp.AdvRefs
	unwatch    func() bool
}

func (w *sshWire) open(ctx context.Context, s service) (talk, error) {
	conn, err := dial(ctx, "tcp", w.at.address())
	if err != nil {
		return nil, fmt.Errorf("reaching %s: %w", w.at.text, err)
	}
	t := &sshTalk{at: w.at, complaints: &complaints{}}
	t.unwatch = context.AfterFunc(ctx, func() { _ = conn.Close() }) // ssh knows no contexts
	if err := w.begin(conn, t, s); err != nil {
		t.unwatch()
		_ = conn.Close()
		return nil, errors.Join(ctx.Err(), err)
	}
	return t, nil
}

// begin logs in, starts the command and reads its refs.
func (w *sshWire) begin(conn net.Conn, t *sshTalk, s service) error {
	c, channels, requests, err := ssh.NewClientConn(conn, w.at.address(), w.config)
	if err != nil {
		return w.denied(err)
	}
	t.client = ssh.NewClient(c, channels, requests)
	if t.session, err = t.client.NewSession(); err != nil {
		return fmt.Errorf("opening a session on %s: %w", w.at.text, err)
	}
	t.session.Stderr = t.complaints
	in, inErr := t.session.StdinPipe()
	out, outErr := t.session.StdoutPipe()
	if err := errors.Join(inErr, outErr, t.session.Start(string(s)+" "+quote(w.at.path))); err != nil {
		return fmt.Errorf("starting %s on %s: %w", s, w.at.text, err)
	}
	t.in, t.out = in, out
	if t.advertised, err = readRefs(out); err != nil {
		return t.failed(err)
	}
	return nil
}

// denied is why one could not log in.
func (w *sshWire) denied(err error) error {
	switch {
	case knownhosts.IsHostUnknown(err):
		return unknownHost(w.at)
	case knownhosts.IsHostKeyChanged(err):
		return Refused("The host %s shows another key than the one in %q of the Secret: if its provider has changed it, write the new one into the Secret; otherwise another server answers there.", w.at.host, keyKnownHosts)
	case strings.Contains(err.Error(), "unable to authenticate"):
		return Refused("%s does not accept the key of the Secret for the user %q: add its public half as a deploy key, with the right to write if branches are to be published.", w.at.text, w.config.User)
	default:
		return fmt.Errorf("logging in to %s: %w", w.at.text, err)
	}
}

// failed is why a command said nothing that makes sense: what it complained of.
// A server that turns one away says so there and ends.
func (t *sshTalk) failed(err error) error {
	if errors.Is(err, errSilent) {
		return err
	}
	_ = t.session.Wait() // what it complained of is then complete; its status says nothing more
	if said := t.complaints.String(); said != "" {
		return Refused("%s turns us away (%s): check the URL and what the key of the Secret may do.", t.at.text, said)
	}
	return err
}

func (t *sshTalk) refs() *packp.AdvRefs { return t.advertised }

func (t *sshTalk) ask(_ context.Context, body io.Reader, _ int64) (io.ReadCloser, error) {
	_, err := io.Copy(t.in, body)
	if err := errors.Join(err, t.in.Close()); err != nil {
		return nil, t.failed(fmt.Errorf("sending to %s: %w", t.at.text, err))
	}
	return io.NopCloser(t.out), nil
}

// Close ends the command, whatever it still has to say.
func (t *sshTalk) Close() error {
	t.unwatch()
	_ = t.session.Close() // it has ended already if all went well
	return t.client.Close()
}

// quote is a path as one word of a shell.
func quote(path string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(path) + "'"
}

// complaints are the first words on a command's standard error.
type complaints struct {
	mu   sync.Mutex
	said []byte
}

func (c *complaints) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.said = append(c.said, p[:min(len(p), maxWords-len(c.said))]...)
	return len(p), nil
}

func (c *complaints) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return words(string(c.said))
}
