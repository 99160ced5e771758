// Package apitest runs a real API server for tests: with our kinds and our
// admission policies, without kubelet and controllers, so that a test reconciles
// everything by hand.
package apitest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/operator"
)

// A Server is a running API server.
type Server struct {
	Config *rest.Config
	// Admin may do everything.
	Admin client.Client
	// HasMutatingPolicies: the API server has MutatingAdmissionPolicies.
	HasMutatingPolicies bool
}

var shared *Server

// Main is the body of a TestMain: it starts one API server for all tests of a package.
func Main(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "apitest:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	env, s, err := launch(nil)
	if env != nil {
		defer func() { _ = env.Stop() }() // the process ends anyway
	}
	if err != nil {
		return 1, err
	}
	shared = s
	return m.Run(), nil
}

// launch starts an API server with our kinds and policies, after configure has changed its
// flags; nil changes none. The environment is returned with an error too, to be stopped.
func launch(configure func(*envtest.Arguments)) (*envtest.Environment, *Server, error) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		if err := os.Setenv("KUBEBUILDER_ASSETS", filepath.Join(Root(), "bin", "assets")); err != nil {
			return nil, nil, err
		}
	}
	env := &envtest.Environment{
		CRDDirectoryPaths:     []string{Manifest("crd")},
		ErrorIfCRDPathMissing: true,
	}
	if configure != nil {
		configure(env.ControlPlane.GetAPIServer().Configure())
	}
	cfg, err := env.Start()
	if err != nil {
		return env, nil, fmt.Errorf("starting an API server (make assets builds it): %w", err)
	}
	cfg.QPS, cfg.Burst = -1, 0
	s := &Server{Config: cfg}
	if s.Admin, err = newClient(cfg); err != nil {
		return env, nil, err
	}
	return env, s, s.guard(context.Background())
}

// readManifests reads the folders of Manifest. go test repeats a result from its cache
// unless a file changed that was opened during a test; the server read its files before.
var readManifests = sync.OnceValue(func() error {
	return filepath.WalkDir(Manifest(), func(_ string, _ fs.DirEntry, err error) error { return err })
})

// Get returns the API server of the package.
func Get(t *testing.T) *Server {
	t.Helper()
	if err := readManifests(); err != nil {
		t.Fatal(err)
	}
	if shared == nil {
		t.Fatal("apitest.Main is not the package's TestMain")
	}
	return shared
}

// Root returns the repository: the folder above the test's with a file PROJECT. A binary that
// was built with -trimpath does not know where its sources are.
func Root() string {
	dir, err := os.Getwd()
	for err == nil && dir != filepath.Dir(dir) {
		if _, missing := os.Stat(filepath.Join(dir, "PROJECT")); missing == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	return "."
}

// Operator is the user that admission policies take for the operator.
const Operator = "system:serviceaccount:deckhand-system:deckhand"

// Manifest returns the path of a CRD, admission policy or role of the chart.
func Manifest(elem ...string) string {
	if changed := os.Getenv("DECKHAND_MANIFESTS"); changed != "" { // of make mutants
		return filepath.Join(append([]string{changed}, elem...)...)
	}
	return filepath.Join(append([]string{Root(), "charts", "deckhand", "files"}, elem...)...)
}

func newClient(cfg *rest.Config) (client.Client, error) {
	scheme, err := operator.Scheme()
	if err != nil {
		return nil, err
	}
	return client.New(cfg, client.Options{Scheme: scheme})
}

// guard installs the admission policies and waits until they take effect.
func (s *Server) guard(ctx context.Context) error {
	files, err := filepath.Glob(Manifest("policy", "*.yaml"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("no admission policies found: %w", err)
	}
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		if err := s.apply(ctx, file); err != nil {
			return fmt.Errorf("applying %s: %w", file, err)
		}
	}
	dropped, err := s.dropManagedFields(ctx)
	if err != nil {
		return err
	}
	probe := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "probe-"},
		Spec:       corev1.PodSpec{ServiceAccountName: v1alpha1.RunnerServiceAccount, Containers: []corev1.Container{{Name: "c", Image: "c"}}},
	}
	unprivileged, err := s.as(rest.ImpersonationConfig{UserName: "probe", Groups: []string{"system:authenticated"}}, []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"create"}},
		{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"runs"}, Verbs: []string{"create"}},
	}, "default")
	if err != nil {
		return err
	}
	impostor := &v1alpha1.Decision{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "probe-"},
		Spec:       v1alpha1.DecisionSpec{Run: "probe", Type: v1alpha1.DecisionMessage, Value: "Hello.", By: "probe"},
	}
	probeRun := &v1alpha1.Run{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "probe-", Labels: map[string]string{v1alpha1.LabelWorkflowRun: "probe"}},
		Spec:       v1alpha1.RunSpec{Agent: "probe", Prompt: "Hello."},
	}
	continuing := &v1alpha1.Run{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "probe-"},
		Spec:       v1alpha1.RunSpec{Agent: "probe", ContinueFrom: &v1alpha1.ContinueFrom{Run: "probe"}},
	}
	fixed := &v1alpha1.Run{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "probe-"},
		Spec:       v1alpha1.RunSpec{Agent: "probe", Input: &runtime.RawExtension{Raw: []byte(`{"a":1}`)}},
	}
	if err := s.createFirstRun(ctx, fixed); err != nil {
		return err
	}
	otherKey := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"input":{"a":null,"b":1}}}`))
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		return apierrors.IsInvalid(s.Admin.Patch(ctx, fixed.DeepCopy(), otherKey, client.DryRunAll)) &&
			IsPolicy(unprivileged.Create(ctx, probe.DeepCopy(), client.DryRunAll)) &&
			IsPolicy(unprivileged.Create(ctx, probeRun.DeepCopy(), client.DryRunAll)) &&
			IsPolicy(unprivileged.Create(ctx, continuing.DeepCopy(), client.DryRunAll)) &&
			IsPolicy(s.Admin.Create(ctx, impostor.DeepCopy(), client.DryRunAll)) && dropped(), nil
	})
	return errors.Join(err, s.Admin.Delete(ctx, fixed))
}

// createFirstRun creates a Run as soon as the API server accepts one. If a MutatingAdmissionPolicy matches Runs, the
// API server refuses them for up to five seconds after their CRD was installed, whatever the failurePolicy of the
// policy is, because it looks for new schemas only that often.
func (s *Server) createFirstRun(ctx context.Context, run *v1alpha1.Run) error {
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		err := s.Admin.Create(ctx, run)
		if apierrors.IsServiceUnavailable(err) {
			return false, nil
		}
		return err == nil, err
	})
}

// dropManagedFields installs the policies that empty the managed fields of Runs and of runner
// pods, if the API server has such policies. The function returns whether they have taken effect.
func (s *Server) dropManagedFields(ctx context.Context) (func() bool, error) {
	err := errors.Join(
		s.apply(ctx, Manifest("mutation", "runner-pod-managed-fields.yaml")),
		s.apply(ctx, Manifest("mutation", "run-managed-fields.yaml")),
	)
	if meta.IsNoMatchError(err) {
		return func() bool { return true }, nil
	}
	s.HasMutatingPolicies = err == nil
	return func() bool {
		probe := metav1.ObjectMeta{Namespace: "default", GenerateName: "probe-", Labels: map[string]string{v1alpha1.LabelRun: "probe"}}
		pod := &corev1.Pod{
			ObjectMeta: probe,
			Spec:       corev1.PodSpec{ServiceAccountName: v1alpha1.RunnerServiceAccount, Containers: []corev1.Container{{Name: "c", Image: "c"}}},
		}
		run := &v1alpha1.Run{ObjectMeta: probe, Spec: v1alpha1.RunSpec{Agent: "probe", Prompt: "Hello."}}
		return s.Admin.Create(ctx, pod, client.DryRunAll) == nil && len(pod.ManagedFields) == 0 &&
			s.Admin.Create(ctx, run, client.DryRunAll) == nil && len(run.ManagedFields) == 0
	}, err
}

// IsPolicy reports whether an error comes from an admission policy, and not from RBAC.
func IsPolicy(err error) bool {
	return err != nil && apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy")
}

func (s *Server) apply(ctx context.Context, file string) error {
	objects, err := readPolicies(file)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if err := s.Admin.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// as returns a client of another user, with rights in a namespace.
func (s *Server) as(who rest.ImpersonationConfig, rules []rbacv1.PolicyRule, namespace string) (client.Client, error) {
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: who.UserName}, Rules: rules}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: who.UserName},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: who.UserName},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: who.UserName}},
	}
	for _, o := range []client.Object{role, binding} {
		if err := s.Admin.Create(context.Background(), o); err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, err
		}
	}
	if err := awaitRights(context.Background(), s.Admin, who, namespace, rules); err != nil {
		return nil, err
	}
	cfg := rest.CopyConfig(s.Config)
	cfg.Impersonate = who
	return newClient(cfg)
}

// As returns a client of a user with the given rights in a namespace. Without rights, the user has the rights from
// bindings of the test.
func (s *Server) As(t *testing.T, user, namespace string, rules ...rbacv1.PolicyRule) client.Client {
	t.Helper()
	c, err := s.as(rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}, rules, namespace)
	if err != nil {
		t.Fatalf("becoming %s: %v", user, err)
	}
	return c
}

// AsServiceAccount returns a client of a ServiceAccount, with the rights that
// bindings give it.
func (s *Server) AsServiceAccount(t *testing.T, namespace, name string) client.WithWatch {
	t.Helper()
	cfg := rest.CopyConfig(s.Config)
	cfg.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + namespace + ":" + name,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
	scheme, err := operator.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatalf("becoming %s: %v", name, err)
	}
	return c
}

// WithToken returns a client that has nothing but a token.
func (s *Server) WithToken(t *testing.T, token string) client.Client {
	t.Helper()
	cfg := rest.AnonymousClientConfig(s.Config)
	cfg.BearerToken = token
	c, err := newClient(cfg)
	if err != nil {
		t.Fatalf("making a client: %v", err)
	}
	return c
}

// Token returns a token of a ServiceAccount, bound to a pod unless that is nil.
func (s *Server) Token(t *testing.T, account *corev1.ServiceAccount, pod *corev1.Pod) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{}
	if pod != nil {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}
	}
	if err := s.Admin.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatalf("requesting a token: %v", err)
	}
	return request.Status.Token
}

// Namespace makes a namespace of the test's own.
func (s *Server) Namespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := s.Admin.Create(t.Context(), ns); err != nil {
		t.Fatalf("creating a namespace: %v", err)
	}
	return ns.Name
}

// Create makes objects, and fails the test where it cannot.
func (s *Server) Create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := s.Admin.Create(t.Context(), o); err != nil {
			t.Fatalf("creating %T: %v", o, err)
		}
	}
}

// ReadObjects reads the objects of a YAML file.
func ReadObjects(file string) ([]client.Object, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return parseObjects(file, data)
}

// readPolicies is ReadObjects for admission policies. It changes them so that they also treat the user of tests as the
// operator.
func readPolicies(file string) ([]client.Object, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return parseObjects(file, bytes.ReplaceAll(data, []byte("['"+Operator+"']"), []byte("['"+Operator+"', 'admin']")))
}

func parseObjects(file string, data []byte) ([]client.Object, error) {
	var out []client.Object
	for doc := range bytes.SplitSeq(data, []byte("\n---\n")) {
		var u unstructured.Unstructured
		if err := yaml.Unmarshal(doc, &u.Object); err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		if u.Object != nil {
			out = append(out, &u)
		}
	}
	return out, nil
}

// AllowKubelets gives the group of kubelets the rights that the Node authorizer gives in a cluster. This API server has
// no Node authorizer.
func (s *Server) AllowKubelets(t *testing.T) {
	t.Helper()
	s.Bind(t, "", "system:node", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:nodes"})
}

// Bind gives a subject the rights of a ClusterRole in a namespace, or in all of them if namespace is
// empty, and returns when the API server knows it.
func (s *Server) Bind(t *testing.T, namespace, role string, subject rbacv1.Subject) {
	t.Helper()
	named := metav1.ObjectMeta{Namespace: namespace, Name: role + ":" + subject.Name} // role alone may be the API server's own
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	var binding client.Object = &rbacv1.ClusterRoleBinding{ObjectMeta: named, RoleRef: ref, Subjects: []rbacv1.Subject{subject}}
	if namespace != "" {
		binding = &rbacv1.RoleBinding{ObjectMeta: named, RoleRef: ref, Subjects: []rbacv1.Subject{subject}}
	}
	if err := s.Admin.Create(t.Context(), binding); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatalf("binding ClusterRole %s: %v", role, err)
	}
	if err := AwaitBinding(t.Context(), s.Admin, namespace, role, subject); err != nil {
		t.Fatal(err)
	}
}

// AwaitBinding returns when the API server knows that a subject has the rights of a ClusterRole in a
// namespace. The first rule of the ClusterRole must be of resources.
func AwaitBinding(ctx context.Context, admin client.Client, namespace, role string, subject rbacv1.Subject) error {
	var bound rbacv1.ClusterRole
	if err := admin.Get(ctx, client.ObjectKey{Name: role}, &bound); err != nil {
		return fmt.Errorf("reading ClusterRole %s: %w", role, err)
	}
	return awaitRights(ctx, admin, identity(subject), namespace, bound.Rules[:1])
}

// identity returns the configuration to impersonate the subject of a binding.
func identity(subject rbacv1.Subject) rest.ImpersonationConfig {
	switch subject.Kind {
	case rbacv1.GroupKind:
		return rest.ImpersonationConfig{UserName: "probe", Groups: []string{subject.Name}}
	case rbacv1.ServiceAccountKind:
		return rest.ImpersonationConfig{UserName: "system:serviceaccount:" + subject.Namespace + ":" + subject.Name}
	default:
		return rest.ImpersonationConfig{UserName: subject.Name}
	}
}

// awaitRights returns when the API server knows rights that were just written: its authorizer reads
// roles and bindings from a cache, which follows the write.
func awaitRights(ctx context.Context, admin client.Client, who rest.ImpersonationConfig, namespace string, rules []rbacv1.PolicyRule) error {
	for _, rule := range rules {
		review := accessReview(who, namespace, rule)
		err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			asked := review.DeepCopy()
			err := admin.Create(ctx, asked)
			return asked.Status.Allowed, err
		})
		if err != nil {
			return fmt.Errorf("waiting until %s may %s %s: %w", who.UserName, rule.Verbs[0], rule.Resources[0], err)
		}
	}
	return nil
}

// accessReview asks for the first verb and resource of a rule.
func accessReview(who rest.ImpersonationConfig, namespace string, rule rbacv1.PolicyRule) *authorizationv1.SubjectAccessReview {
	resource, subresource, _ := strings.Cut(rule.Resources[0], "/")
	asked := &authorizationv1.ResourceAttributes{
		Namespace: namespace, Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: resource, Subresource: subresource,
	}
	if len(rule.ResourceNames) > 0 {
		asked.Name = rule.ResourceNames[0]
	}
	return &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: who.UserName, Groups: who.Groups, ResourceAttributes: asked,
	}}
}
