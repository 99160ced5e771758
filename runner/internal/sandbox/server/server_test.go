//go:build linux

package server

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/probe"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/sandboxtest"
)

func TestInstall(t *testing.T) {
	program, dir := sandboxtest.Program(t), filepath.Join(t.TempDir(), "deckhand", "sandbox")
	for range 2 { // a second time as after a restart of the init container
		if out, err := exec.CommandContext(t.Context(), program, "install", dir).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	want, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "bin", "sandbox"))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("the copy has %d bytes of %d, %v", len(got), len(want), err)
	}
	modes := map[string]os.FileMode{}
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := d.Info()
		modes[strings.TrimPrefix(path, dir)] = info.Mode().Perm()
		return err
	})
	if diff := cmp.Diff(map[string]os.FileMode{"/bin": 0o755, "/bin/sandbox": 0o755, "/run": 0o770}, modes); err != nil || diff != "" {
		t.Errorf("%v, modes -want +got:\n%s", err, diff)
	}
}

func TestArguments(t *testing.T) {
	o, err := parse(nil, []string{"A=b"}, io.Discard)
	want := Options{
		Socket: "/deckhand/sandbox/run/exec.sock", Protect: "/deckhand", Workspace: "/workspace", Home: "/home/agent", Temp: "/tmp",
		Environ: []string{"A=b"},
	}
	if diff := cmp.Diff(want, o); err != nil || diff != "" {
		t.Errorf("without arguments: %v, -want +got:\n%s", err, diff)
	}
	if o, err := parse([]string{"-open", "-socket", "/s"}, nil, io.Discard); err != nil || !o.Open || o.Socket != "/s" {
		t.Errorf("%+v, %v", o, err)
	}
	for _, bad := range [][]string{{"-socket", "s"}, {"-what"}, {"more"}, {"-home="}} {
		if _, err := parse(bad, nil, io.Discard); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	for _, bad := range [][]string{nil, {"install"}, {"dance"}, {"serve", "-socket", "s"}} {
		var said bytes.Buffer
		if code := Main(bad, &said); code != 1 || said.Len() == 0 {
			t.Errorf("%q: %d, %q", bad, code, said.String())
		}
	}
}

func TestTargets(t *testing.T) {
	always := []string{"169.254.169.254:80", "1.1.1.1:443"}
	for name, tc := range map[string]struct {
		environ, want []string
	}{
		"outside of a cluster": {nil, always},
		"in a pod":             {[]string{"KUBERNETES_SERVICE_HOST=10.96.0.1", "KUBERNETES_SERVICE_PORT=443"}, append(always, "10.96.0.1:443")},
		"in a pod of IPv6":     {[]string{"KUBERNETES_SERVICE_HOST=fd00::1", "KUBERNETES_SERVICE_PORT=443"}, append(always, "[fd00::1]:443")},
		"with a high port, which commands may connect to": {
			[]string{"KUBERNETES_SERVICE_HOST=10.96.0.1", "KUBERNETES_SERVICE_PORT=6443"}, always,
		},
		"with a port that is none": {[]string{"KUBERNETES_SERVICE_HOST=10.96.0.1", "KUBERNETES_SERVICE_PORT=https"}, always},
	} {
		t.Run(name, func(t *testing.T) {
			want := probe.Targets{Addresses: tc.want, Server: os.Getpid(), Dir: "/run"}
			if diff := cmp.Diff(want, targets("/run/exec.sock", tc.environ)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestTheLastOfTwoVariablesCounts(t *testing.T) {
	got := commandEnvironment([]string{"A=1", "B=2", "A=3"}, "", map[string]string{"B": "4"})
	if diff := cmp.Diff([]string{"A=3", "B=4"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
