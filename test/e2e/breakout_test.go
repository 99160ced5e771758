//go:build e2e

package e2e

import (
	"context"
	_ "embed"
	"encoding/json"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

//go:embed testdata/breakout.py
var breakout string

//go:embed testdata/harbor.py
var harbor string

// Canaries beside the key of the models and the password of git.
const (
	harborKey   = "harbor-e2e-canary-0123456789"
	neighborKey = "neighbor-e2e-canary-0123456789"
)

// publicAddress is one of the Internet's, which in the namespace leads to the
// scripted server.
const publicAddress = "93.184.216.34"

// attempts are what is tried from within a sandbox, and what must come of it.
var attempts = map[string]string{
	// A search that finds its own decoy finds no secret: neither of this Run, nor
	// of its server, nor of the Run next door.
	"control: a decoy in environments": `found`, "secrets in environments": `nothing`,
	"control: a decoy in memories": `found`, "secrets in memories": `nothing`,
	"control: a decoy in files": `found`, "secrets in files": `nothing`,
	"mounts":                             "/ /deckhand/sandbox /deckhand/termination-log /home/agent /tmp /workspace",
	"/deckhand":                          `sandbox termination-log`,
	"/deckhand/sandbox":                  `bin run`,
	"sockets in sight":                   `exec.sock proxy.sock`,
	"the token of a ServiceAccount":      `ENOENT`,
	"variables of Services":              `none`,
	"environ of the first process":       `EACCES`,
	"mem of the first process":           `EACCES`,
	"maps of the first process":          `EACCES`,
	"open files of the first process":    `EACCES`,
	"root of the first process":          `EACCES`,
	"tracing the first process":          `EPERM`,
	"ending the first process":           `EPERM`,
	"becoming root":                      `EPERM`,
	"a device":                           `EPERM`,
	"mounting":                           `EPERM`,
	"a user namespace":                   `EPERM`,
	"changing the image":                 `EROFS|EACCES`,
	"the kernel's handler of crashes":    `EROFS|EACCES`,
	"sysrq":                              `EROFS|EACCES|ENOENT`,
	"cgroups":                            `EROFS|EACCES`,
	"forging a termination message":      `EACCES`,
	"speaking as the runner":             `closed`,
	"removing exec.sock":                 `EACCES`,
	"moving exec.sock":                   `EACCES`,
	"opening exec.sock to write":         `EACCES|ENXIO`,
	"removing proxy.sock":                `EACCES`,
	"moving proxy.sock":                  `EACCES`,
	"opening proxy.sock to write":        `EACCES|ENXIO`,
	"removing sandbox":                   `EACCES`,
	"moving sandbox":                     `EACCES`,
	"opening sandbox to write":           `EACCES|ETXTBSY`,
	"a socket beside them":               `EACCES`,
	"a link beside them":                 `EACCES`,
	"moving their directory":             `EACCES`,
	"listeners of the pod":               `loopback`,
	"abstract sockets of the pod":        `none`,
	"metadata":                           `EACCES`,
	"metadata over IPv6":                 `EACCES`,
	"the Internet":                       `EACCES`,
	"the API server's Service":           `EACCES`,
	"a Service":                          `EACCES`,
	"DNS by TCP":                         `EACCES`,
	"DNS":                                `no answer`,
	"a datagram":                         `EPERM`,
	"a raw socket":                       `EPERM`,
	"packets":                            `EPERM`,
	"the firewall":                       `EPERM`,
	"the hypervisor":                     `EPERM`,
	"models without a key":               `401 .*|EACCES|TimeoutError.*|ECONNREFUSED`,
	"the API server":                     `40[13] .*|EACCES|TimeoutError.*|ECONNREFUSED`,
	"the API server with a forged token": `40[13] .*|EACCES|TimeoutError.*|ECONNREFUSED`,
	"the kubelet":                        `40[13] .*|EACCES|TimeoutError.*|ECONNREFUSED`,
	"proxy: a host that is not listed":   `403 .*add the host to sandbox.egress.hosts of the Agent.*`,
	"proxy: the API server":              `403 .*`,
	"proxy: metadata, listed":            `403 .*leads to no public address.*`,
	"proxy: a Service, listed":           `403 .*leads to no public address.*`,
	"proxy: loopback, listed":            `403 .*leads to no public address.*`,
	"proxy: a public host, listed":       `200 'ok\\n'`,
	"proxy: a public host, its port 1":   `50[0-9] .*`,
	"a high port outside":                `.*`, // a policy allows the namespace of a Service that is named
}

// Commands of the model search for the secrets of their pod and of another Run's pod, try to
// change what confines them, and try to connect to what they may not reach.
func TestCommandsReachNoSecrets(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	repository := p.serveGit()
	p.create(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "harbor"}, StringData: map[string]string{"key": harborKey}},
		harborServer(),
	)
	node := p.neighbor()
	to, hosts := p.targets()
	p.agent("escaping", withShell, onVolume, p.furnished(map[string]string{"breakout.py": breakout, "to.json": to}), func(a *v1alpha1.Agent) {
		a.Spec.Tools = append(a.Spec.Tools, v1alpha1.Tool{Toolset: "harbor"})
		a.Spec.Sandbox.Egress = &v1alpha1.Egress{Hosts: hosts}
		a.Spec.PodTemplate = &v1alpha1.PodTemplate{NodeSelector: node}
		a.Spec.Workspace.Git = &v1alpha1.Git{URL: repository, SecretRef: &v1alpha1.SecretRef{Name: gitName}, Publish: v1alpha1.PublishBranch}
	})
	run := p.ends(p.run("escaping"), "True Finished")
	results := p.toolResults("escaping-1")
	if len(results) != 3 || !strings.Contains(results[0], "the key has 28 letters") || !strings.Contains(results[2], "all is well") {
		t.Fatalf("the results of the tool calls are %q", results)
	}
	checkConfinement(t, run.Status.Progress.Confinement, results[1])
	if said := run.Status.Progress.Result.Text; said != "I found nothing." {
		t.Errorf("the result is %q", said)
	}
	p.holdsNoSecret(run)
}

// An agent that requires confinement does not work on a cluster node that does not enforce
// it, and the message names the part that is missing.
func TestRequiredConfinement(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	p.agent("trivial", withShell, func(a *v1alpha1.Agent) { a.Spec.Sandbox.Confinement = v1alpha1.ConfinementRequired })
	run := p.await(p.run("trivial"), "finishes", finished)
	shut := run.Status.Progress.Confinement
	if shut != nil && shut.Process+shut.Files+shut.Network == "EnforcedEnforcedEnforced" {
		p.ends(run, "True Finished")
		return
	}
	p.ends(run, "False Misconfigured")
	if said := message(run); !strings.Contains(said, "sandbox.confinement is Required") || !strings.Contains(said, "network is PortsOnly: this pod connected to a port of the operator") {
		t.Errorf("the message is %q", said)
	}
}

// checkConfinement compares what came of the attempts with what must.
func checkConfinement(t *testing.T, shut *v1alpha1.Confinement, text string) {
	t.Helper()
	got := map[string]string{}
	for line := range strings.Lines(text) {
		if name, came, ok := strings.Cut(strings.TrimRight(line, "\n"), "\t"); ok {
			got[name] = came
		}
	}
	for name, want := range attempts {
		if !regexp.MustCompile(`^(?:` + want + `)$`).MatchString(got[name]) {
			t.Errorf("%s: %q, want %s", name, got[name], want)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("nobody judges %v", slices.Sorted(maps.Keys(got)))
	}
	if shut == nil || shut.Process != "Enforced" || shut.Files != "Enforced" {
		t.Fatalf("confinement is %+v", shut)
	}
	if shut.Network == "Unenforced" {
		t.Errorf("the network is %s", shut.Network)
	}
}

// holdsNoSecret looks for canaries where people look: in the Run, in its pods and
// in what they said.
func (p *testNamespace) holdsNoSecret(run *v1alpha1.Run) {
	p.t.Helper()
	var pods corev1.PodList
	if err := cluster.admin.List(p.t.Context(), &pods, client.InNamespace(p.name), client.MatchingLabels{v1alpha1.LabelRun: run.Name}); err != nil {
		p.t.Fatal(err)
	}
	status, err := json.Marshal([]any{run, pods.Items})
	if err != nil {
		p.t.Fatal(err)
	}
	texts := map[string]string{"the Run and its pods": string(status)}
	for i := range pods.Items {
		texts["the log of "+pods.Items[i].Name] = p.log(p.t.Context(), pods.Items[i].Name)
	}
	for where, text := range texts {
		for _, secret := range []string{key, gitPassword, harborKey, neighborKey, "eyJhbGciOiJSUzI1NiIs"} {
			if strings.Contains(text, secret) {
				p.t.Errorf("%s holds %s…", where, secret[:8])
			}
		}
	}
}

// harborServer is a Toolset with a server of its own, which has a key.
func harborServer() *v1alpha1.Toolset {
	return &v1alpha1.Toolset{ObjectMeta: metav1.ObjectMeta{Name: "harbor"}, Spec: v1alpha1.ToolsetSpec{Stdio: &v1alpha1.StdioServer{
		Command:   []string{"python3", "-c", harbor},
		Container: &v1alpha1.ServerContainer{Image: imageOf("toolbox")},
		Env:       []v1alpha1.ServerVariable{{Name: "HARBOR_KEY", ValueSecretRef: &v1alpha1.SecretKeyRef{Name: "harbor", Key: "key"}}},
	}}}
}

// neighbor is another Run, at work, with a canary on its volume. It returns a selector of its
// cluster node.
func (p *testNamespace) neighbor() map[string]string {
	p.t.Helper()
	p.agent("neighbor", withShell, onVolume)
	run := p.run("neighbor")
	p.await(run, "has its canary", func(r *v1alpha1.Run) bool {
		return r.Status.Progress != nil && r.Status.Progress.Counts.ToolCalls > 0
	})
	return map[string]string{corev1.LabelHostname: p.pod(run, 1).Spec.NodeName}
}

// targets are where commands try to get, and the hosts that the agent lists.
func (p *testNamespace) targets() (to string, hosts []v1alpha1.Host) {
	p.t.Helper()
	public := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "public", Namespace: modelsNamespace}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": modelsName}, ExternalIPs: []string{publicAddress},
		Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
	}}
	if err := cluster.admin.Create(p.t.Context(), public); err != nil {
		p.t.Fatalf("making an address of the Internet's: %v", err)
	}
	if err := until(p.t.Context(), func(ctx context.Context) (bool, error) { return hasEndpoints(ctx, modelsNamespace, "public") }); err != nil {
		p.t.Fatal(err)
	}
	var pods corev1.PodList
	if err := cluster.admin.List(p.t.Context(), &pods, client.InNamespace(modelsNamespace), client.MatchingLabels{"app": modelsName}); err != nil || len(pods.Items) == 0 {
		p.t.Fatalf("finding the scripted server: %v", err)
	}
	services := map[string]string{}
	for namespace, name := range map[string]string{"default": "kubernetes", modelsNamespace: modelsName} {
		s := &corev1.Service{}
		if err := cluster.admin.Get(p.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, s); err != nil {
			p.t.Fatal(err)
		}
		services[name] = s.Spec.ClusterIP
	}
	text, err := json.Marshal(map[string]string{
		"service": services["kubernetes"], "models": services[modelsName], "api": p.apiServer(),
		"node": pods.Items[0].Status.HostIP, "pod": pods.Items[0].Status.PodIP, "inside": host, "public": publicAddress,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text), []v1alpha1.Host{publicAddress, v1alpha1.Host(host), "169.254.169.254", "127.0.0.1"}
}

// apiServer is the API server as pods reach it by its own port.
func (p *testNamespace) apiServer() string {
	p.t.Helper()
	at, err := url.Parse(cluster.config.Host)
	if err != nil || at.Port() == "" {
		p.t.Fatalf("the API server is at %s: %v", cluster.config.Host, err)
	}
	if slices.Contains([]string{"127.0.0.1", "localhost", "::1"}, at.Hostname()) {
		return "https://" + p.apiServerAddress() + ":" + at.Port()
	}
	return "https://" + at.Host
}

// apiServerAddress is an address of the API server, which may be that of its cluster node.
func (p *testNamespace) apiServerAddress() string {
	p.t.Helper()
	var endpoints discoveryv1.EndpointSliceList
	if err := cluster.admin.List(p.t.Context(), &endpoints, client.InNamespace("default"), client.MatchingLabels{discoveryv1.LabelServiceName: "kubernetes"}); err != nil {
		p.t.Fatal(err)
	}
	for _, s := range endpoints.Items {
		for _, e := range s.Endpoints {
			return e.Addresses[0]
		}
	}
	p.t.Fatal("the Service kubernetes has no endpoints")
	return ""
}

// faultScripts are the scripts of stories about attacks and faults.
var faultScripts = merged(confinementScripts, policyScripts, misbehavingScripts, lostSandboxScripts, memoryScripts, approvalScripts, shareScripts)

// confinementScripts try to leave a sandbox.
var confinementScripts = map[string]modeltest.Dialogue{
	"escaping": turns(
		modeltest.Turn{Calls: []modeltest.Call{call("harbor__tide", args{})}},
		modeltest.Turn{Calls: []modeltest.Call{call("Shell", sh("python3 attacks/breakout.py attacks/to.json 2>&1", withTimeout(280)))}},
		modeltest.Turn{Calls: []modeltest.Call{call("Shell", sh("echo all is well"))}},
		modeltest.Turn{Text: "I found nothing."},
	),
	"neighbor": turns(
		modeltest.Turn{Calls: []modeltest.Call{call("Write", args{"path": "canary.txt", "content": neighborKey})}},
		modeltest.Turn{Calls: []modeltest.Call{call("Shell", sh("CANARY=$(cat canary.txt) sleep 300", withTimeout(300)))}},
		modeltest.Turn{Text: "Done."},
	),
}
