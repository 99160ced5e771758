package git

import (
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// Whatever is wrong with a key, no line of it is in the error, also if it is in the place of
// another.
func TestABrokenKeyIsNotQuoted(t *testing.T) {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	locked, err := ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte("opensesame"))
	if err != nil {
		t.Fatal(err)
	}
	key := string(pem.EncodeToMemory(block))
	lines := strings.Split(key, "\n")
	const host = "git.example ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJZ0tZ0tZ0tZ0tZ0tZ0tZ0tZ0tZ0tZ0tZ0tZ0tZ0tZ0t\n"
	cases := map[string]struct{ key, hosts string }{
		"without its first line":        {strings.Join(lines[1:], "\n"), host},
		"without its last line":         {strings.Join(lines[:len(lines)-2], "\n"), host},
		"without a line of it":          {strings.Join(slices.Delete(slices.Clone(lines), 2, 3), "\n"), host},
		"on one line":                   {strings.ReplaceAll(key, "\n", " "), host},
		"of another kind":               {strings.ReplaceAll(key, "OPENSSH", "RSA"), host},
		"with a passphrase":             {string(pem.EncodeToMemory(locked)), host},
		"in the place of known hosts":   {key, key},
		"as a line of the known hosts":  {key, "@" + lines[1] + " " + lines[1] + " " + lines[1]},
		"beside a host that it is not":  {key, "git.example " + lines[1] + " " + lines[1] + "\n"},
		"with hosts that are not known": {key, strings.ReplaceAll(host, "git.example", "other.example")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := errors.Join(os.WriteFile(dir+"/"+keyPrivateKey, []byte(tc.key), 0o600), os.WriteFile(dir+"/"+keyKnownHosts, []byte(tc.hosts), 0o600)); err != nil {
				t.Fatal(err)
			}
			_, err := NewRemote(Access{URL: "ssh://git@git.example/x.git", Credentials: dir})
			if _, refused := errors.AsType[*RefusedError](err); !refused {
				t.Fatalf("NewRemote() = %v", err)
			}
			for line := range strings.FieldsSeq(tc.key) {
				if len(line) > len("OPENSSH") && strings.Contains(err.Error(), line[:8]) && !strings.Contains(line, "-----") {
					t.Errorf("it quotes the key: %v", err)
				}
			}
		})
	}
}
