package git

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/google/go-cmp/cmp"
)

func TestLocate(t *testing.T) {
	cases := map[string]location{
		"https://github.com/acme/app.git":     {scheme: "https", host: "github.com", path: "/acme/app.git", text: "https://github.com/acme/app.git"},
		"HTTPS://github.com/acme/app/":        {scheme: "https", host: "github.com", path: "/acme/app", text: "https://github.com/acme/app/"},
		"https://acme@dev.azure.com/a/_git/b": {scheme: "https", host: "dev.azure.com", user: "acme", path: "/a/_git/b", text: "https://dev.azure.com/a/_git/b"},
		"http://git.svc:3000/a%20b":           {scheme: "http", host: "git.svc:3000", path: "/a%20b", text: "http://git.svc:3000/a%20b"},
		"git@github.com:acme/app.git":         {scheme: "ssh", host: "github.com", user: "git", path: "acme/app.git", text: "git@github.com:acme/app.git"},
		"git@[::1]:app":                       {scheme: "ssh", host: "[::1]", user: "git", path: "app", text: "git@[::1]:app"},
		"ssh://git@host:2222/srv/app.git":     {scheme: "ssh", host: "host:2222", user: "git", path: "/srv/app.git", text: "ssh://git@host:2222/srv/app.git"},
		"ssh://host/~ann/app":                 {scheme: "ssh", host: "host", path: "~ann/app", text: "ssh://host/~ann/app"},
	}
	for raw, want := range cases {
		t.Run(raw, func(t *testing.T) {
			got, err := parseURL(raw)
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(location{})); err != nil || diff != "" {
				t.Errorf("error %v, -want +got:\n%s", err, diff)
			}
		})
	}
}

func TestLocateRefuses(t *testing.T) {
	for _, raw := range []string{
		"", "x", "/srv/app.git", "./app", "file:///srv/app", "git://host/app", "ext::sh", "https:///app", "https://host", "https://host/", "https://a:b@host/x",
		"https://host/x?y=z", "https://host/x#y", "https:host/x", "https://host/\x00", "https://ho st/x", "ssh://host/", "git@host:-x", "ssh://-oProxyCommand=x/y", "ftp://host/x", "https://[::1/x", "http://:80/x",
	} {
		if got, err := parseURL(raw); err == nil {
			t.Errorf("%q is taken for %+v", raw, got)
		} else if _, ok := errors.AsType[*RefusedError](err); !ok {
			t.Errorf("%q: %v is no RefusedError", raw, err)
		}
	}
}

func TestTreesAreWrittenInGitsOrder(t *testing.T) {
	file, dir := plumbing.NewHash("1111111111111111111111111111111111111111"), plumbing.NewHash("2222222222222222222222222222222222222222")
	entries := []entry{{"a.txt", filemode.Regular, file}, {"a", filemode.Dir, dir}, {"a-b", filemode.Executable, file}, {"a0", filemode.Symlink, file}}
	data := encodeTree(entries)
	got, err := parseTree(data)
	want := []entry{{"a-b", filemode.Executable, file}, {"a.txt", filemode.Regular, file}, {"a", filemode.Dir, dir}, {"a0", filemode.Symlink, file}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(entry{})); err != nil || diff != "" {
		t.Errorf("error %v, -want +got:\n%s", err, diff)
	}
}

func FuzzParseTree(f *testing.F) {
	f.Add([]byte("100644 a\x0011111111111111111111"))
	f.Add([]byte("40000 a\x001111"))
	f.Add([]byte("x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := parseTree(data)
		if err == nil && len(data) > 0 && len(entries) == 0 {
			t.Error("something was read as nothing")
		}
	})
}

// A server that stops in the middle is given up, and one that works is not.
func TestASilentServerIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		conn := newIdleTimeoutConn(ours, time.Minute)
		defer conn.Close()
		go func() {
			for range 3 {
				time.Sleep(50 * time.Second)
				_, _ = theirs.Write([]byte("x"))
			}
		}()
		for range 3 {
			if _, err := conn.Read(make([]byte, 1)); err != nil {
				t.Fatalf("a server that works: %v", err)
			}
		}
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, errSilent) {
			t.Errorf("got error %v, want errSilent", err)
		}
	})
}

func TestWordsOfAServerAreFitToBeShown(t *testing.T) {
	got := printable("a\x1b[31m b\n\n c\xff" + string(make([]byte, 2000)))
	if got != "a [31m b c?" {
		t.Errorf("got %q", got)
	}
	long := printable(string(make([]rune, 0)) + "ü" + stringOf('ü', 2000))
	if len(long) > maxWords+len("…") {
		t.Errorf("%d bytes", len(long))
	}
}

func stringOf(r rune, n int) string {
	out := make([]rune, n)
	for i := range out {
		out[i] = r
	}
	return string(out)
}
