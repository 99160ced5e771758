package git

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

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
	// CABundle are certificates, in PEM, that https is trusted by besides those of
	// the system.
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

// credentials are what a Secret holds for one URL.
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

// URL is the repository's, without credentials.
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
	c := credentials{username: firstNonEmpty(oneLine(name), at.user, "git"), password: oneLine(password)}
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
	return credentials{username: firstNonEmpty(at.user, "git"), privateKey: key, knownHosts: dir + "/" + keyKnownHosts}, nil
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

func firstNonEmpty(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// basic returns the value of the header Authorization; empty for none.
func (c credentials) basic() string {
	if c.password == "" {
		return ""
	}
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(c.username+":"+c.password))
}

// redactor returns a redactor of all forms in which the credentials are sent, and of each
// line of a key: an error may quote one.
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
