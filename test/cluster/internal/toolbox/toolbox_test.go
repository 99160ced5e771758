package toolbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestRelease(t *testing.T) {
	for name, tc := range map[string]struct{ file, want string }{
		"a Debian has its own":          {"ID=debian\nVERSION_CODENAME=trixie\n", "trixie"},
		"quotes mean nothing":           {"ID=\"debian\"\nVERSION_CODENAME=\"trixie\"\n", "trixie"},
		"another system has the stable": {"ID=ubuntu\nVERSION_CODENAME=noble\n", "bookworm"},
		"a Debian without a name too":   {"ID=debian\n", "bookworm"},
		"and no file at all":            {"", "bookworm"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := release(tc.file); got != tc.want {
				t.Errorf("release() = %q, want %q", got, tc.want)
			}
		})
	}
}

// Hundreds of lines become four, and an error has the last ones.
func TestProgress(t *testing.T) {
	var said []string
	p := &progress{say: func(text string) { said = append(said, text) }}
	for range 50 {
		for _, line := range []string{"I: Target architecture", "I: Retrieving git 1:2", "W: odd", "I: Retrieving curl 8", "I: Unpacking git..."} {
			if _, err := p.Write([]byte(line + "\n")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if want := []string{"  retrieving", "  unpacking"}; !slices.Equal(said, want) {
		t.Errorf("it said %q, want %q", said, want)
	}
	if !strings.HasSuffix(p.last(), "I: Unpacking git...\n") || len(p.last()) > 4096 {
		t.Errorf("its last words are %q", p.last())
	}
}

// What is needless goes, the user comes, and links do not lead out of the tree.
func TestFurnish(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root gives files away")
	}
	dir, outside := t.TempDir(), t.TempDir()
	for file, text := range map[string]string{
		"etc/passwd": "root:x:0:0::/root:/bin/sh\n", "etc/group": "root:x:0:\n", "usr/share/doc/git/README": "read me", "usr/bin/git": "git",
	} {
		if err := put(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := put(filepath.Join(outside, "log", "syslog"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "var")); err != nil {
		t.Fatal(err)
	}
	if err := furnish(dir); err == nil {
		t.Error("a link that leads out was followed")
	}
	if _, err := os.Stat(filepath.Join(outside, "log", "syslog")); err != nil {
		t.Error("a file outside of the tree was removed")
	}
	if err := os.Remove(filepath.Join(dir, "var")); err != nil {
		t.Fatal(err)
	}
	if err := furnish(dir); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "etc/passwd")); err != nil || !strings.HasSuffix(string(data), entry) {
		t.Errorf("passwd is %q, %v", data, err)
	}
	for file, there := range map[string]bool{"usr/share/doc": false, "usr/bin/git": true, "var/log": true, home[1:]: true} {
		if _, err := os.Stat(filepath.Join(dir, file)); (err == nil) != there {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// The first go of a user takes over what is compiled, and later ones do not.
func TestFront(t *testing.T) {
	dir := t.TempDir()
	script := strings.ReplaceAll(string(front), goRoot, dir)
	if script == string(front) {
		t.Fatalf("it does not name %s", goRoot)
	}
	for file, text := range map[string]string{
		"front": script, "bin/go": "#!/bin/sh\necho go \"$@\"\n", "cache/00/a": "compiled",
	} {
		if err := put(filepath.Join(dir, file), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, home := range map[string]string{"a home": t.TempDir(), "no place to write": "/dev/null"} {
		t.Run(name, func(t *testing.T) {
			compiled := filepath.Join(home, ".cache", "go-build", "00", "a")
			for range 2 {
				cmd := exec.CommandContext(t.Context(), "sh", filepath.Join(dir, "front"), "test", "./a b")
				cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
				if out, err := cmd.CombinedOutput(); err != nil || string(out) != "go test ./a b\n" {
					t.Fatalf("it prints %q, %v", out, err)
				}
				if _, err := os.Stat(compiled); (err == nil) != (home != "/dev/null") {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestDropPrograms(t *testing.T) {
	dir := t.TempDir()
	for file, text := range map[string]string{"00/library": "!<arch>\n", "00/program": "\x7fELF and more", "short": "x"} {
		if err := put(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := dropPrograms(dir); err != nil {
		t.Fatal(err)
	}
	for file, there := range map[string]bool{"00/library": true, "00/program": false, "short": true} {
		if _, err := os.Stat(filepath.Join(dir, file)); (err == nil) != there {
			t.Errorf("%s: %v", file, err)
		}
	}
}
