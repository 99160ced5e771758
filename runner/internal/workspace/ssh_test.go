package workspace_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/deckhand-dev/deckhand/runner/internal/workspace"
)

// An sshServer gives the services of git to whoever has the client's key.
type sshServer struct {
	*server
	address    string
	host       ssh.Signer
	clientKey  []byte // in PEM
	knownHosts string
	config     *ssh.ServerConfig
	rejects    ssh.RejectionReason // of each session; zero: it rejects none
}

func newKey(t *testing.T) (ssh.Signer, []byte) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	must(t, err)
	signer, err := ssh.NewSignerFromKey(private)
	must(t, err)
	return signer, pem.EncodeToMemory(block)
}

// serveSSH starts a server. The changes are made before it listens.
func serveSSH(t *testing.T, changes ...func(*sshServer)) *sshServer {
	t.Helper()
	s := &sshServer{server: serve(t, seed)}
	s.host, _ = newKey(t)
	client, private := newKey(t)
	s.clientKey = private
	config := &ssh.ServerConfig{PublicKeyCallback: func(c ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if c.User() != "git" || string(key.Marshal()) != string(client.PublicKey().Marshal()) {
			return nil, io.EOF
		}
		return &ssh.Permissions{}, nil
	}}
	config.AddHostKey(s.host)
	s.config = config
	for _, change := range changes {
		change(s)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	s.address = listener.Addr().String()
	s.knownHosts = knownhosts.Line([]string{s.address}, s.host.PublicKey())
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go s.greet(conn, config)
		}
	}()
	return s
}

func (s *sshServer) greet(conn net.Conn, config *ssh.ServerConfig) {
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for one := range channels {
		if s.rejects != 0 {
			_ = one.Reject(s.rejects, "not here")
			continue
		}
		channel, requests, err := one.Accept()
		if err != nil {
			return
		}
		go s.command(channel, requests)
	}
}

// command runs what a client asks for, as a login shell would.
func (s *sshServer) command(channel ssh.Channel, requests <-chan *ssh.Request) {
	for r := range requests {
		if r.Type != "exec" {
			_ = r.Reply(false, nil)
			continue
		}
		_ = r.Reply(true, nil)
		cmd := exec.CommandContext(context.Background(), "sh", "-c", string(r.Payload[4:]))
		cmd.Dir, cmd.Stdout, cmd.Stderr = filepath.Dir(s.repo), channel, channel.Stderr()
		in, _ := cmd.StdinPipe()
		go func() { _, _ = io.Copy(in, channel); in.Close() }()
		code := byte(0)
		if cmd.Run() != nil {
			code = 1
		}
		_, _ = channel.SendRequest("exit-status", false, []byte{0, 0, 0, code})
		channel.Close()
	}
}

func (s *sshServer) git(t *testing.T, secret map[string]string) *workspace.Git {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, map[string]string{"ssh-privatekey": string(s.clientKey), "known_hosts": s.knownHosts + "\n"})
	for key, value := range secret {
		must(t, os.RemoveAll(filepath.Join(dir, key)))
		if value != "" {
			write(t, dir, map[string]string{key: value})
		}
	}
	return &workspace.Git{URL: "ssh://git@" + s.address + s.repo, Credentials: dir}
}

func TestFetchAndPublishOverSSH(t *testing.T) {
	s := serveSSH(t)
	home := t.TempDir() // whose configuration of ssh leads elsewhere
	write(t, home, map[string]string{".ssh/config": "Host *\n\tHostname 127.0.0.1\n\tPort 1\n\tProxyCommand false\n", ".ssh/known_hosts": "x\n"})
	t.Setenv("HOME", home)
	t.Setenv("SSH_KNOWN_HOSTS", home+"/.ssh/known_hosts")
	t.Setenv("SSH_AUTH_SOCK", home+"/none")
	for depth := range 2 {
		g := s.git(t, nil)
		g.Depth = depth
		p := newPlace(t, g)
		p.fetch(t)
		if got := run(t, p.dir, "status", "--porcelain"); got != "" {
			t.Errorf("git status says %q", got)
		}
		noise := make([]byte, 3<<20)
		_, _ = rand.Read(noise)
		write(t, p.dir, map[string]string{"new": "x", "large": string(noise)})
		name := branch + strings.Repeat("x", depth)
		got, err := p.publish(t, func(o *workspace.PublishOptions) { o.Branch = name })
		must(t, err)
		if got.Commit != run(t, s.repo, "rev-parse", name) || got.Files != 2 {
			t.Errorf("published %+v", got)
		}
	}
	run(t, s.repo, "fsck")
}

func TestSSHIsRefused(t *testing.T) {
	s := serveSSH(t)
	other, otherKey := newKey(t)
	_, private, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	block, err := ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte("pass"))
	must(t, err)
	cases := map[string]struct {
		secret map[string]string
		change func(*workspace.Git)
		says   string
	}{
		"no known_hosts":                   {map[string]string{"known_hosts": ""}, nil, `has no key "known_hosts", so the server cannot be verified: add to it what "ssh-keyscan 127.0.0.1" prints`},
		"known_hosts without the host":     {map[string]string{"known_hosts": knownhosts.Line([]string{"example.com"}, other.PublicKey())}, nil, "does not have the host"},
		"known_hosts that nobody can read": {map[string]string{"known_hosts": "x y z"}, nil, "cannot be read as such"},
		"another key of the host":          {map[string]string{"known_hosts": knownhosts.Line([]string{s.address}, other.PublicKey())}, nil, "shows another key"},
		"a key that the server denies":     {map[string]string{"ssh-privatekey": string(otherKey)}, nil, "does not accept the key"},
		"no key":                           {map[string]string{"ssh-privatekey": ""}, nil, `has no key "ssh-privatekey"`},
		"what is no key":                   {map[string]string{"ssh-privatekey": token}, nil, "is no private key"},
		"a key with a passphrase":          {map[string]string{"ssh-privatekey": string(pem.EncodeToMemory(block))}, nil, "has a passphrase"},
		"a repository that is not there":   {nil, func(g *workspace.Git) { g.URL += "x" }, "refuses access"},
		"a path with a command in it":      {nil, func(g *workspace.Git) { g.URL += "';touch${IFS}x;'" }, "refuses access"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := s.git(t, tc.secret)
			if tc.change != nil {
				tc.change(g)
			}
			wantRefused(t, workspace.Fetch(t.Context(), newPlace(t, g).options()), tc.says)
			if _, err := os.Stat(filepath.Join(filepath.Dir(s.repo), "x")); err == nil {
				t.Error("the path was run as a command")
			}
		})
	}
}

// A server that has no algorithm in common with this client, or opens no session, will not
// later.
func TestWhichFaultsOfSSHArePermanent(t *testing.T) {
	for name, tc := range map[string]struct {
		change    func(*sshServer)
		permanent bool
		says      string
	}{
		"an old key exchange":   {func(s *sshServer) { s.config.KeyExchanges = []string{ssh.InsecureKeyExchangeDH1SHA1} }, true, "has no algorithm for key exchange in common with Deckhand (it has diffie-hellman-group1-sha1"},
		"an old cipher":         {func(s *sshServer) { s.config.Ciphers = []string{ssh.InsecureCipherTripleDESCBC} }, true, "(it has 3des-cbc)"},
		"no sessions":           {func(s *sshServer) { s.rejects = ssh.Prohibited }, true, "opens no session"},
		"no sessions of a kind": {func(s *sshServer) { s.rejects = ssh.UnknownChannelType }, true, "opens no session"},
		"too many sessions":     {func(s *sshServer) { s.rejects = ssh.ResourceShortage }, false, "opening a session"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveSSH(t, tc.change)
			err := workspace.Fetch(t.Context(), newPlace(t, s.git(t, nil)).options())
			permanentIs(t, err, tc.permanent, tc.says)
		})
	}
}

func TestAContextEndsWhatWaitsForAServer(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0") // accepts, and says nothing
	must(t, err)
	defer listener.Close()
	s := serveSSH(t)
	s.address = listener.Addr().String()
	s.knownHosts = knownhosts.Line([]string{s.address}, s.host.PublicKey())
	for name, g := range map[string]*workspace.Git{"ssh": s.git(t, nil), "http": {URL: "http://" + s.address + "/x"}} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				conn, err := listener.Accept()
				if err == nil {
					_, _ = conn.Read(make([]byte, 1))
					cancel()
				}
			}()
			if err := workspace.Fetch(ctx, newPlace(t, g).options()); err == nil || ctx.Err() == nil {
				t.Errorf("got error %v", err)
			}
			cancel()
		})
	}
}
