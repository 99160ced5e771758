package policy_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
)

// A second release is installed beside the first if it watches other namespaces, and
// refused if it would run the Runs of the first as well. The API server is the test's own, because it
// goes on asking policies for a while that were deleted, and some are for all namespaces.
func TestASecondReleaseIsRefusedTheNamespacesOfTheFirst(t *testing.T) {
	s := apitest.NewKillable(t)
	h := &helm{t: t, kubeconfig: kubeconfig(t, s.Config)}
	one, other, third := s.Namespace(t), s.Namespace(t), s.Namespace(t)
	h.mustInstall("first", one, one)
	h.mustInstall("second", other, other)
	h.mustRefuse(third, "release first already runs the Runs of the namespaces "+one, one)
	h.mustRefuse(third, "release second already runs the Runs of the namespaces "+other, third, other)
	h.mustRefuse(third, "already runs the Runs of the namespaces ")
	h.mustInstall("first", one, one) // an upgrade is not a second release

	h.uninstall("first", one)
	h.uninstall("second", other)
	h.mustInstall("everywhere", one)
	h.mustRefuse(third, "release everywhere already runs the Runs of the namespaces "+third, third)
	h.mustRefuse(third, "release everywhere already runs the Runs of all namespaces")
	h.uninstall("everywhere", one)
}

// helm runs the tool that the chart is installed with.
type helm struct {
	t          *testing.T
	kubeconfig string
	trusted    []string // users in policies.trustedUsers
}

func (h *helm) run(arguments ...string) (string, error) {
	h.t.Helper()
	tool := filepath.Join(apitest.Root(), "bin", "tools", "helm")
	if _, err := os.Stat(tool); err != nil {
		h.t.Skip("helm is not built: run make test")
	}
	command := exec.CommandContext(h.t.Context(), tool, arguments...)
	command.Env = append(os.Environ(), "KUBECONFIG="+h.kubeconfig)
	out, err := command.CombinedOutput()
	return string(out), err
}

// install installs or upgrades a release that watches namespaces; without any, all. It
// does not wait for pods, because no node runs them here.
func (h *helm) install(release, namespace string, watched ...string) (string, error) {
	h.t.Helper()
	list, err := json.Marshal(append([]string{}, watched...))
	users, errUsers := json.Marshal(append([]string{}, h.trusted...))
	if err := errors.Join(err, errUsers); err != nil {
		h.t.Fatal(err)
	}
	return h.run("upgrade", "--install", release, filepath.Join(apitest.Root(), "charts", "deckhand"), "--namespace", namespace,
		"--set", "crds.install=false", "--set-json", "watchNamespaces="+string(list),
		"--set-json", "policies.trustedUsers="+string(users))
}

func (h *helm) mustInstall(release, namespace string, watched ...string) {
	h.t.Helper()
	if out, err := h.install(release, namespace, watched...); err != nil {
		h.t.Fatalf("installing release %s: %v\n%s", release, err, out)
	}
}

// mustRefuse fails the test unless a release is refused with a message that contains
// want, and nothing of it is installed.
func (h *helm) mustRefuse(namespace, want string, watched ...string) {
	h.t.Helper()
	out, err := h.install("refused", namespace, watched...)
	if err == nil || !strings.Contains(out, want) || !strings.Contains(out, "Set watchNamespaces of both releases to different namespaces") {
		h.t.Errorf("helm upgrade --install for namespaces %q: %v, want an error that contains %q:\n%s", watched, err, want, out)
	}
	if out, err := h.run("status", "refused", "--namespace", namespace); err == nil {
		h.t.Errorf("the refused release is installed:\n%s", out)
	}
}

func (h *helm) uninstall(release, namespace string) {
	h.t.Helper()
	if out, err := h.run("uninstall", release, "--namespace", namespace); err != nil {
		h.t.Fatalf("uninstalling release %s: %v\n%s", release, err, out)
	}
}

// kubeconfig writes a file with which helm reaches the API server.
func kubeconfig(t *testing.T, cfg *rest.Config) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: cfg.Host, CertificateAuthorityData: cfg.CAData}
	config.AuthInfos["test"] = &clientcmdapi.AuthInfo{ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	config.CurrentContext = "test"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}
