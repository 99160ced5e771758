//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/operator"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

// waitTimeout bounds one wait. It is reached only if something hangs: a busy machine with
// two cores takes up to two minutes for the slowest waits.
const waitTimeout = 5 * time.Minute

// key is the API key of the scripted models.
const key = "sk-e2e-canary-0123456789"

// The namespace and address of the server that all stories share. To run the tests twice at
// once on a cluster, set E2E_MODELS_NAMESPACE.
var (
	modelsNamespace = cmp.Or(os.Getenv("E2E_MODELS_NAMESPACE"), "deckhand-e2e-models")
	host            = "models." + modelsNamespace
	endpoint        = "http://" + host + "/v1"
)

var cluster struct {
	config *rest.Config
	admin  client.Client
	api    kubernetes.Interface
}

func TestMain(m *testing.M) {
	if err := connect(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	code := m.Run()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: modelsNamespace}}
	_ = cluster.admin.Delete(context.Background(), ns)
	os.Exit(code)
}

func connect() error {
	ctrl.SetLogger(logr.Discard())
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the cluster: %w", err)
	}
	cfg.QPS, cfg.Burst = -1, 0
	scheme, err := operator.Scheme()
	if err != nil {
		return err
	}
	cluster.config = cfg
	if cluster.admin, err = client.New(cfg, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("reaching the cluster: %w", err)
	}
	if cluster.api, err = kubernetes.NewForConfig(cfg); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), waitTimeout)
	defer cancel()
	return serveModels(ctx)
}

// serveModels runs the scripted server with the scripts of all stories.
func serveModels(ctx context.Context) error {
	if err := replace(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: modelsNamespace}}); err != nil {
		return err
	}
	return serve(ctx, modelsNamespace, modeltest.Script{Key: key, Models: merged(scripts, faultScripts)}, hostile)
}

// replace creates a namespace, after deleting what an earlier run of the tests left.
func replace(ctx context.Context, ns client.Object) error {
	return until(ctx, func(ctx context.Context) (bool, error) {
		err := cluster.admin.Create(ctx, ns)
		if err == nil {
			return true, nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return false, err
		}
		return false, client.IgnoreNotFound(cluster.admin.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns.GetName()}}))
	})
}

// until polls until a condition holds. A busy API server may fail single requests: they
// are repeated.
func until(ctx context.Context, holds wait.ConditionWithContextFunc) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, waitTimeout, true, func(ctx context.Context) (bool, error) {
		var done bool
		if done, last = holds(ctx); isTransient(last) {
			return false, nil
		}
		return done, last
	})
	if err != nil && last != nil && !errors.Is(err, last) {
		return fmt.Errorf("%w: %w", err, last)
	}
	return err
}

// isTransient reports whether a request may succeed if it is repeated.
func isTransient(err error) bool {
	return apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) ||
		utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsHTTP2ConnectionLost(err) || utilnet.IsProbableEOF(err)
}

// A testNamespace is a namespace that enforces restricted Pod Security, with the key of
// the models.
type testNamespace struct {
	t    *testing.T
	name string
}

func newNamespace(t *testing.T) *testNamespace {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "deckhand-e2e-",
		Labels:       map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	if err := cluster.admin.Create(t.Context(), ns); err != nil {
		t.Fatalf("creating a namespace: %v", err)
	}
	p := &testNamespace{t: t, name: ns.Name}
	t.Cleanup(func() {
		if t.Failed() {
			p.logState()
		}
		_ = cluster.admin.Delete(context.WithoutCancel(t.Context()), ns)
	})
	p.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, StringData: map[string]string{"api-key": key}})
	return p
}

// logState logs the Runs, the pods and their logs.
func (p *testNamespace) logState() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.t.Context()), time.Minute)
	defer cancel()
	var runs v1alpha1.RunList
	_ = cluster.admin.List(ctx, &runs, client.InNamespace(p.name))
	for i := range runs.Items {
		status, _ := json.MarshalIndent(runs.Items[i].Status, "", "  ")
		p.t.Logf("Run %s: %s", runs.Items[i].Name, status)
	}
	var pods corev1.PodList
	_ = cluster.admin.List(ctx, &pods, client.InNamespace(p.name))
	for i := range pods.Items {
		p.t.Logf("Pod %s is %s %s; its log:\n%s", pods.Items[i].Name, pods.Items[i].Status.Phase, pods.Items[i].Status.Message, p.log(ctx, pods.Items[i].Name))
	}
}

func (p *testNamespace) log(ctx context.Context, pod string) string {
	data, err := cluster.api.CoreV1().Pods(p.name).GetLogs(pod, &corev1.PodLogOptions{}).DoRaw(ctx)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func (p *testNamespace) create(objects ...client.Object) {
	p.t.Helper()
	for _, o := range objects {
		o.SetNamespace(p.name)
		if err := cluster.admin.Create(p.t.Context(), o); err != nil {
			p.t.Fatalf("creating %T %s: %v", o, o.GetName(), err)
		}
	}
}

// agent makes a Model of a script and an Agent of that Model, both named after
// it.
func (p *testNamespace) agent(script string, mods ...func(*v1alpha1.Agent)) {
	p.t.Helper()
	agent := &v1alpha1.Agent{
		ObjectMeta: metav1.ObjectMeta{Name: script},
		Spec: v1alpha1.AgentSpec{
			Instructions: "Do what you are told.",
			Model:        script,
			Tools:        []v1alpha1.Tool{{Builtin: v1alpha1.BuiltinFiles}},
		},
	}
	for _, mod := range mods {
		mod(agent)
	}
	p.create(modelOf(script), agent)
}

// modelOf is a Model of a script, named after it.
func modelOf(script string, mods ...func(*v1alpha1.Model)) *v1alpha1.Model {
	m := &v1alpha1.Model{
		ObjectMeta: metav1.ObjectMeta{Name: script},
		Spec: v1alpha1.ModelSpec{
			Provider:        v1alpha1.ProviderOpenAICompatible,
			Endpoint:        endpoint,
			ModelID:         script,
			APIKeySecretRef: &v1alpha1.SecretKeyRef{Name: "key", Key: "api-key"},
			Prices:          &v1alpha1.Prices{Input: "3USD", Output: "15USD"},
		},
	}
	for _, mod := range mods {
		mod(m)
	}
	return m
}

// run starts a Run of an agent.
func (p *testNamespace) run(agent string, mods ...func(*v1alpha1.Run)) *v1alpha1.Run {
	p.t.Helper()
	run := &v1alpha1.Run{
		ObjectMeta: metav1.ObjectMeta{Name: agent},
		Spec:       v1alpha1.RunSpec{Agent: agent, Prompt: "Do it."},
	}
	for _, mod := range mods {
		mod(run)
	}
	p.create(run)
	return run
}

// await waits until a condition holds for a Run, and returns the Run. It fails the test if
// the Run ends before.
func (p *testNamespace) await(run *v1alpha1.Run, what string, holds func(*v1alpha1.Run) bool) *v1alpha1.Run {
	p.t.Helper()
	var seen v1alpha1.Run
	err := until(p.t.Context(), func(ctx context.Context) (bool, error) {
		seen = v1alpha1.Run{}
		if err := cluster.admin.Get(ctx, client.ObjectKeyFromObject(run), &seen); err != nil {
			return false, err
		}
		if seen.Status.CompletionTime != nil && !holds(&seen) {
			return false, fmt.Errorf("it ended %s", succeeded(&seen))
		}
		return holds(&seen), nil
	})
	if err != nil {
		p.t.Fatalf("Run %s never %s (%s): %v", run.Name, what, succeeded(&seen), err)
	}
	return &seen
}

func finished(r *v1alpha1.Run) bool { return r.Status.CompletionTime != nil }

// ends waits for the end of a Run, which must be as wanted.
func (p *testNamespace) ends(run *v1alpha1.Run, want string) *v1alpha1.Run {
	p.t.Helper()
	seen := p.await(run, "finishes", finished)
	if got := succeeded(seen); !strings.HasPrefix(got, want+":") {
		p.t.Fatalf("Run %s ended %s, want %s", run.Name, got, want)
	}
	return seen
}

func succeeded(r *v1alpha1.Run) string {
	for _, c := range r.Status.Conditions {
		if c.Type == v1alpha1.ConditionSucceeded {
			return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
		}
	}
	return "without a condition"
}

func message(r *v1alpha1.Run) string {
	_, text, _ := strings.Cut(succeeded(r), ": ")
	return text
}

// pod waits for the pod of an attempt to start. A short attempt may have ended by then.
func (p *testNamespace) pod(run *v1alpha1.Run, attempt int) *corev1.Pod {
	p.t.Helper()
	var pod corev1.Pod
	err := until(p.t.Context(), func(ctx context.Context) (bool, error) {
		err := cluster.admin.Get(ctx, client.ObjectKey{Namespace: p.name, Name: fmt.Sprintf("%s-%d", run.Name, attempt)}, &pod)
		return err == nil && pod.Status.Phase != "" && pod.Status.Phase != corev1.PodPending, client.IgnoreNotFound(err)
	})
	if err != nil {
		p.t.Fatalf("the pod of attempt %d of Run %s does not start: %v", attempt, run.Name, err)
	}
	return &pod
}

// killPod deletes a pod without a grace period, as when its cluster node is lost.
func (p *testNamespace) killPod(pod *corev1.Pod) {
	p.t.Helper()
	now := int64(0)
	if err := cluster.admin.Delete(p.t.Context(), pod, &client.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		p.t.Fatalf("killing Pod %s: %v", pod.Name, err)
	}
}

// as is a client of a person who holds a ClusterRole in the namespace, as a member of
// groups. The API server knows it already.
func (p *testNamespace) as(user, role string, groups ...string) client.Client {
	p.t.Helper()
	person := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}
	p.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{person},
	})
	if err := apitest.AwaitBinding(p.t.Context(), cluster.admin, p.name, role, person); err != nil {
		p.t.Fatal(err)
	}
	cfg := rest.CopyConfig(cluster.config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append([]string{"system:authenticated"}, groups...)}
	c, err := client.New(cfg, client.Options{Scheme: cluster.admin.Scheme()})
	if err != nil {
		p.t.Fatalf("becoming %s: %v", user, err)
	}
	return c
}

// ready is the condition Ready, in a line.
func ready(conditions []metav1.Condition) string {
	for _, c := range conditions {
		if c.Type == v1alpha1.ConditionReady {
			return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
		}
	}
	return "without a condition"
}

// awaitNotReady waits until an object is not ready for a reason, with a message that
// has the rest.
func (p *testNamespace) awaitNotReady(o client.Object, name string, want []string, says func() string) {
	p.t.Helper()
	err := until(p.t.Context(), func(ctx context.Context) (bool, error) {
		err := cluster.admin.Get(ctx, client.ObjectKey{Namespace: p.name, Name: name}, o)
		return err == nil && strings.HasPrefix(says(), "False "+want[0]+":"), err
	})
	if err != nil {
		p.t.Errorf("%s is %s, want %s: %v", name, says(), want[0], err)
	}
	for _, piece := range want[1:] {
		if !strings.Contains(says(), piece) {
			p.t.Errorf("%s: the message lacks %q: %s", name, piece, says())
		}
	}
}
