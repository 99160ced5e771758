package cluster

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestConfigurationIsComplete(t *testing.T) {
	s := site(t)
	if err := s.folder().prepare(); err != nil {
		t.Fatal(err)
	}
	for _, c := range s.components().all() {
		for _, arg := range c.args {
			_, file, _ := strings.Cut(arg, "=")
			if !strings.HasPrefix(file, s.Path("conf")) && !strings.HasPrefix(file, s.Path("pki")) {
				continue
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s is started with a file that nobody wrote: %v", c.name, err)
			}
		}
	}
}

func TestNetworkConfigurationIsJSON(t *testing.T) {
	data, err := render("cni.json", site(t).nodes()[1].values())
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(data) {
		t.Errorf("not JSON:\n%s", data)
	}
}

// A kubelet takes pods, logs and cgroups that it does not know for leftovers, and removes them.
func TestNodesShareNothingOfTheirOwn(t *testing.T) {
	s := site(t)
	first, second := s.nodes()[0].values(), s.nodes()[1].values()
	for _, file := range []string{"cni.json", "containerd.toml", "kubelet.yaml", "kube-proxy.yaml"} {
		a, errA := render(file, first)
		b, errB := render(file, second)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		linesB := strings.Split(string(b), "\n")
		for line := range strings.Lines(string(a)) {
			line = strings.TrimRight(line, "\n")
			if strings.Contains(line, s.Dir) && !isShared(line) && slices.Contains(linesB, line) {
				t.Errorf("%s: both nodes have the line %q", file, line)
			}
		}
	}
}

// isShared reports whether a line names a file that all nodes read and none writes.
func isShared(line string) bool {
	return strings.Contains(line, "/conf/resolv.conf") || strings.Contains(line, "/pki/ca.crt")
}

func TestPreparingAgainKeepsCertificates(t *testing.T) {
	s := site(t)
	var kubeconfigs []string
	for range 2 {
		if err := s.folder().prepare(); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(s.Kubeconfig())
		if err != nil {
			t.Fatal(err)
		}
		kubeconfigs = append(kubeconfigs, string(data))
	}
	if kubeconfigs[0] != kubeconfigs[1] {
		t.Error("a second preparation locks out those who hold the first kubeconfig")
	}
}

func TestAFolderOfSomeoneElseIsRefused(t *testing.T) {
	s := site(t)
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.Path("thesis.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.folder().prepare(); err == nil {
		t.Error("the folder was taken, and would be removed")
	}
}

func TestAssetsAreLinksToTheProgram(t *testing.T) {
	s, dir := site(t), t.TempDir()
	for range 2 {
		if err := s.Assets(dir); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range assets {
		if target, err := os.Readlink(filepath.Join(dir, name)); err != nil || target != s.K8s {
			t.Errorf("%s is a link to %q (%v), want %q", name, target, err, s.K8s)
		}
	}
}

func TestOnlyOurOwnShimsAreKilled(t *testing.T) {
	s := site(t)
	cases := map[string]struct {
		args []string
		want bool
	}{
		"ours":               {[]string{"/usr/bin/containerd-shim-runc-v2", "-id", "a", "-address", s.nodes()[1].containerd()}, true},
		"another cluster's":  {[]string{"/usr/bin/containerd-shim-runc-v2", "-id", "a", "-address", "/run/containerd/containerd.sock"}, false},
		"someone's question": {[]string{"grep", "-address", s.nodes()[0].containerd()}, false},
		"an empty line":      {[]string{""}, false},
		"cut short":          {[]string{"containerd-shim-runc-v2", "-address"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := s.isShim(tc.args); got != tc.want {
				t.Errorf("isShim(%q) = %v, want %v", tc.args, got, tc.want)
			}
		})
	}
}

func TestParseMounts(t *testing.T) {
	got := parseMounts("27 1 254:0 / / rw - ext4 /dev/vda rw\n" +
		"43 27 254:0 /a /with\\040space rw shared:2 master:1 - cgroup2 none rw\n" +
		"a line of another format\n")
	want := []mount{{"/", "ext4"}, {"/with space", "cgroup2"}}
	if !slices.Equal(got, want) {
		t.Errorf("parseMounts() = %v, want %v", got, want)
	}
}

// site is a cluster's place in a folder that does not exist yet.
func site(t *testing.T) Site {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "k8s")
	if err := os.WriteFile(program, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return Site{Name: "test", Dir: filepath.Join(dir, "state"), Port: 1, K8s: program, Pause: program}
}
