package cluster

import (
	"bytes"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"text/template"
)

//go:embed templates
var templates embed.FS

// programs are the names of the links that make one program many.
var programs = []string{
	"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler",
	"kubelet", "kube-proxy", "cluster-dns", "kubectl",
}

// assets are the names of the programs that envtest needs.
var assets = []string{"etcd", "kube-apiserver", "kubectl"}

// marker is an empty file that marks a folder that Down may remove.
const marker = ".deckhand-cluster"

// A folder is where the cluster of a Site keeps its files.
type folder struct{ Site }

func (s Site) folder() folder { return folder{s} }

// prepare makes the folder and its content before the processes start.
func (f folder) prepare() error {
	if err := f.claim(); err != nil {
		return err
	}
	for _, d := range []string{"bin", "conf", "log", "pid", "pki", "run"} {
		if err := os.MkdirAll(f.Path(d), 0o755); err != nil {
			return fmt.Errorf("making folder: %w", err)
		}
	}
	if err := link(f.K8s, f.Path("bin"), programs); err != nil {
		return err
	}
	if err := f.authority().certificates(); err != nil {
		return err
	}
	return f.configure()
}

// claim marks the folder as the cluster's. Down removes it with everything in it, so a folder that has other files is
// refused.
func (f folder) claim() error {
	if err := os.MkdirAll(f.Dir, 0o755); err != nil {
		return fmt.Errorf("making folder: %w", err)
	}
	if f.claimed() {
		return nil
	}
	entries, err := os.ReadDir(f.Dir)
	if err != nil {
		return fmt.Errorf("reading folder: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s holds files that are not a cluster's; choose another CLUSTER_DIR", f.Dir)
	}
	return os.WriteFile(f.Path(marker), nil, 0o644)
}

func (f folder) claimed() bool {
	_, err := os.Stat(f.Path(marker))
	return err == nil
}

// Assets makes links to the programs of envtest in a folder, for KUBEBUILDER_ASSETS.
func (s Site) Assets(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making folder: %w", err)
	}
	return link(s.K8s, dir, assets)
}

// link makes links of the given names to one program.
func link(program, dir string, names []string) error {
	if _, err := os.Stat(program); err != nil {
		return fmt.Errorf("finding the Kubernetes program (build it first): %w", err)
	}
	for _, n := range names {
		path := filepath.Join(dir, n)
		if err := removeFile(path); err != nil {
			return fmt.Errorf("linking %s: %w", n, err)
		}
		if err := os.Symlink(program, path); err != nil {
			return fmt.Errorf("linking %s: %w", n, err)
		}
	}
	return nil
}

// configure renders every configuration file.
func (f folder) configure() error {
	for _, n := range f.nodes() {
		if err := f.configureNode(n); err != nil {
			return err
		}
	}
	for path, who := range map[string]string{
		f.conf("controller-manager.kubeconfig"): "controller-manager",
		f.conf("scheduler.kubeconfig"):          "scheduler",
		f.conf("dns.kubeconfig"):                "dns",
		f.Kubeconfig():                          "admin",
	} {
		if err := f.kubeconfig(path, who, f.api()); err != nil {
			return err
		}
	}
	return nil
}

// configureNode renders the files of one node.
func (f folder) configureNode(n node) error {
	for path, file := range map[string]string{
		f.conf(n.file("containerd") + ".toml"):    "containerd.toml",
		f.conf(n.file("kubelet") + ".yaml"):       "kubelet.yaml",
		f.conf(n.file("kube-proxy") + ".yaml"):    "kube-proxy.yaml",
		f.conf("resolv.conf"):                     "resolv.conf",
		f.Path(n.file("cni"), "10-pods.conflist"): "cni.json",
	} {
		data, err := render(file, n.values())
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("making folder: %w", err)
		}
		if err := write(path, data, 0o644); err != nil {
			return err
		}
	}
	for path, who := range map[string]string{
		f.conf(n.file("kubelet") + ".kubeconfig"):    n.file("kubelet"),
		f.conf(n.file("kube-proxy") + ".kubeconfig"): "proxy",
	} {
		if err := f.kubeconfig(path, who, n.api()); err != nil {
			return err
		}
	}
	return nil
}

// kubeconfig writes a kubeconfig that contains its certificates, so that it may be copied elsewhere.
func (f folder) kubeconfig(path, who, api string) error {
	values := map[string]string{"Name": f.Name, "User": who, "API": api}
	for key, file := range map[string]string{"CA": "ca.crt", "Cert": who + ".crt", "Key": who + ".key"} {
		data, err := os.ReadFile(f.pki(file))
		if err != nil {
			return fmt.Errorf("reading certificate: %w", err)
		}
		values[key] = base64.StdEncoding.EncodeToString(data)
	}
	data, err := render("kubeconfig.yaml", values)
	if err != nil {
		return err
	}
	return write(path, data, 0o600)
}

// values returns the values of the templates of a node, by name.
func (n node) values() map[string]string {
	return map[string]string{
		"Dir": n.Dir, "Name": n.name(), "Suffix": n.suffix, "NodeIP": n.ip, "DNS": nodeIP,
		"PodRange": podRange, "NodePods": n.pods,
		"PauseImage": pauseImage, "Network": cniNetwork, "Plugins": cniPlugins, "Containerd": n.containerd(),
	}
}

func render(file string, values map[string]string) ([]byte, error) {
	t, err := template.New(file).Option("missingkey=error").ParseFS(templates, "templates/"+file)
	if err != nil {
		return nil, fmt.Errorf("reading template: %w", err)
	}
	var buf bytes.Buffer
	if err := t.Execute(&buf, values); err != nil {
		return nil, fmt.Errorf("rendering %s: %w", file, err)
	}
	return buf.Bytes(), nil
}

// write replaces a file in one step: someone may be reading it.
func write(path string, data []byte, mode fs.FileMode) error {
	if err := os.WriteFile(path+".new", data, mode); err != nil {
		return fmt.Errorf("writing %s: %w", filepath.Base(path), err)
	}
	return os.Rename(path+".new", path)
}

// removeFile removes a file. A file that does not exist is no error.
func removeFile(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
