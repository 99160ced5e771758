package runnerpod

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// newInput returns what the first pod of a Run is built from.
func newInput(t *testing.T, run *v1alpha1.Run, agent *v1alpha1.Agent, o snapshot.Objects) Input {
	t.Helper()
	v, err := snapshot.Of(agent, o)
	if err != nil {
		t.Fatalf("taking a revision: %v", err)
	}
	shared, _ := SharedVolumeClaim(run)
	in := Input{
		Run:            run,
		Revision:       v,
		Attempt:        1,
		Limits:         v.Snapshot.Agent.Limits,
		Durable:        v.Agent.Workspace.Durable || shared != "",
		ActiveDeadline: 70 * time.Minute,
		Image:          Image{Name: "runner:1", PullPolicy: corev1.PullIfNotPresent},
	}
	if !in.Durable {
		in.ActiveDeadline += 7 * 24 * time.Hour // a paused Run keeps its pod for limits.wait
	}
	run.Status.Attempt = &v1alpha1.Attempt{Number: 1, Pod: Name(run.Name, 1), AgentRevision: v.Hash}
	if in.Durable {
		run.Status.Attempt.VolumeClaim = VolumeClaimName(run)
	}
	return in
}

// firstPod is the first pod of a Run of an Agent that runs no commands.
func firstPod(t *testing.T, mods ...func(*v1alpha1.Run)) *corev1.Pod {
	t.Helper()
	return New(newInput(t, gen.Run(mods...), gen.Agent(), gen.Objects()))
}

// equipped is the first pod of a Run of [gen.Coder], as an installation makes it.
func equipped(t *testing.T, install func(*Input), mods ...func(*v1alpha1.Agent)) *corev1.Pod {
	t.Helper()
	in := newInput(t, gen.Run(), gen.Agent(append([]func(*v1alpha1.Agent){gen.Coder}, mods...)...), gen.Toolsets())
	install(&in)
	return New(in)
}

func plainly(*Input) {}

func closedNetwork(in *Input) {
	in.NetworkPolicies = true
	in.Defaults = Defaults{
		ImageMirror:      "mirror.example:5000/hub",
		ImagePullSecrets: []string{"mirror"},
		CABundle:         &v1alpha1.ConfigMapKeyRef{Name: "company-ca", Key: "bundle.pem"},
		Proxy:            &v1alpha1.Proxy{HTTP: "http://proxy.example:3128", NoProxy: ".example"},
		NetworkCheck:     "deckhand-check.deckhand-system.svc:20471",
	}
}

// golden compares an object with its file.
func golden(t *testing.T, file string, object any) {
	t.Helper()
	got, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// The whole pod, to be read: what each line is for stands in pod.go.
func TestPod(t *testing.T) {
	golden(t, "pod.yaml", firstPod(t))
}

// Each Secret that any reachable Model, tool or hook names is mounted once, with
// the keys that are used; and a pod that may wait for people may live as long.
func TestPodOfManyAgents(t *testing.T) {
	key := func(secret, key string) *v1alpha1.SecretKeyRef {
		return &v1alpha1.SecretKeyRef{Name: v1alpha1.ObjectName(secret), Key: key}
	}
	reviewer := gen.Agent(func(a *v1alpha1.Agent) {
		a.Name, a.Spec.Model = "reviewer", "small"
		a.Spec.Tools = []v1alpha1.Tool{{Builtin: v1alpha1.BuiltinAsk}}
		a.Spec.Hooks = []v1alpha1.Hook{{Name: "h", Point: v1alpha1.AfterModel, URL: "https://h", Timeout: "5s", TokenSecretRef: key("my.dotted.secret", "token")}}
	})
	small := gen.Model(func(m *v1alpha1.Model) { m.Name, m.Spec.APIKeySecretRef = "small", key("sonnet", "other-key") })
	fixer := gen.Agent(func(a *v1alpha1.Agent) {
		a.Spec.Tools = []v1alpha1.Tool{
			{Agent: "reviewer"},
			{Builtin: v1alpha1.BuiltinWebSearch, WebSearch: &v1alpha1.WebSearchTool{APIKeySecretRef: key(strings.Repeat("long-", 20)+"name", "api-key")}},
		}
	})
	o := gen.Objects(gen.Model(), small)
	o.Agents["reviewer"] = reviewer
	run := gen.Run(func(r *v1alpha1.Run) {
		r.Spec.User = "ann@example.com"
		r.Spec.Input = &runtime.RawExtension{Raw: []byte(`{"prompt": "Fix that."}`)}
		r.Spec.Prompt = ""
	})
	in := newInput(t, run, fixer, o)
	golden(t, "pod-of-many.yaml", New(in))
}

// Labels of a Run go with its pod, but not those by which tools find what they
// made: they would adopt the pod, or prune it.
func TestLabelsOfGitOpsToolsStayOnTheRun(t *testing.T) {
	pod := firstPod(t, func(r *v1alpha1.Run) {
		r.Labels = map[string]string{
			"team":                             "a",
			"kueue.x-k8s.io/queue-name":        "gpu",
			"app.kubernetes.io/instance":       "release",
			"argocd.argoproj.io/instance":      "app",
			"kustomize.toolkit.fluxcd.io/name": "apps",
			"velero.io/backup-name":            "nightly",
			"deckhand.dev/run":                 "another",
		}
	})
	want := map[string]string{
		"team": "a", "kueue.x-k8s.io/queue-name": "gpu",
		"app.kubernetes.io/name": "deckhand-runner", "app.kubernetes.io/managed-by": "deckhand",
		"deckhand.dev/run": "x", "deckhand.dev/attempt": "1", "deckhand.dev/agent": "fixer",
	}
	if diff := cmp.Diff(want, pod.Labels); diff != "" {
		t.Errorf("labels -want +got:\n%s", diff)
	}
}

// No key is in the pod's specification: only where one lies.
func TestPodHoldsNoKey(t *testing.T) {
	pod := firstPod(t)
	for _, c := range pod.Spec.Containers {
		for _, e := range c.Env {
			if e.ValueFrom == nil || e.ValueFrom.SecretKeyRef != nil {
				t.Errorf("environment %s", e.Name)
			}
		}
	}
	if !strings.Contains(string(ToJSON(pod.Spec.Volumes)), `"secretName":"sonnet"`) {
		t.Error("the key is not mounted")
	}
}
