package render_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// everything sets every value to something else than its default.
func everything(t *testing.T) string {
	t.Helper()
	values, err := os.ReadFile("testdata/everything.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(values)
}

// eachInstall runs a test on the chart as different people install it.
func eachInstall(t *testing.T, test func(t *testing.T, objects []object)) {
	t.Helper()
	installs := map[string]string{
		"by default":        "",
		"in two namespaces": "watchNamespaces: [team-a, team-b]",
		"with two replicas": "replicas: 2",
		"everything set":    everything(t),
	}
	for name, values := range installs {
		t.Run(name, func(t *testing.T) { test(t, template(t, "prod", values)) })
	}
}

func TestEveryPodIsRestricted(t *testing.T) {
	eachInstall(t, func(t *testing.T, objects []object) {
		pod := manager(t, objects).Spec.Template.Spec
		yes, no, nonroot := true, false, int64(65532)
		wantPod := &corev1.PodSecurityContext{
			RunAsNonRoot:   &yes,
			RunAsUser:      &nonroot,
			RunAsGroup:     &nonroot,
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		}
		if slices.Contains(pod.Containers[0].Args, "--pod-user=Cluster") { // the cluster assigns them
			wantPod.RunAsUser, wantPod.RunAsGroup = nil, nil
		}
		if diff := cmp.Diff(wantPod, pod.SecurityContext); diff != "" {
			t.Errorf("pod: -want +got:\n%s", diff)
		}
		want := &corev1.SecurityContext{
			AllowPrivilegeEscalation: &no,
			ReadOnlyRootFilesystem:   &yes,
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}
		for _, c := range pod.Containers {
			if diff := cmp.Diff(want, c.SecurityContext); diff != "" {
				t.Errorf("container %s: -want +got:\n%s", c.Name, diff)
			}
		}
		isHostVolume := func(v corev1.Volume) bool { return v.ConfigMap == nil }
		if pod.HostNetwork || pod.HostPID || pod.HostIPC || slices.ContainsFunc(pod.Volumes, isHostVolume) {
			t.Error("the pod shares something of its node")
		}
	})
}

func TestPoliciesBindWhereTheOperatorWatches(t *testing.T) {
	cases := map[string]struct {
		values     string
		namespaces []string // nil: all
	}{
		"everywhere":     {values: ""},
		"two namespaces": {values: "watchNamespaces: [team-a, team-b]", namespaces: []string{"team-a", "team-b"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := template(t, "prod", tc.values)
			bindings := all[admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, objects, "ValidatingAdmissionPolicyBinding")
			policies := ids(only(objects, "ValidatingAdmissionPolicy"))
			if len(bindings) != len(policies) || len(policies) < 2 {
				t.Fatalf("%d bindings of %v", len(bindings), policies)
			}
			for _, b := range bindings {
				if !slices.Contains(policies, "ValidatingAdmissionPolicy "+b.Spec.PolicyName) {
					t.Errorf("%s binds %s, which is not there", b.Name, b.Spec.PolicyName)
				}
				if diff := cmp.Diff(tc.namespaces, watched(b)); diff != "" {
					t.Errorf("%s: -want +got:\n%s", b.Name, diff)
				}
			}
		})
	}
}

// A reviewer can keep the policies from namespaces of the cluster. No Run starts there, and a
// release that watches other namespaces does not take them for its own.
func TestPoliciesExcludeNamespaces(t *testing.T) {
	for values, want := range map[string][]metav1.LabelSelectorRequirement{
		"policies: {install: true, excludeNamespaces: [kube-system, storage]}": {
			{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"kube-system", "storage"}},
		},
		"{watchNamespaces: [team-a], policies: {install: true, excludeNamespaces: [kube-system]}}": {
			{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpIn, Values: []string{"team-a"}},
			{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"kube-system"}},
		},
	} {
		objects := template(t, "prod", values)
		bindings := all[admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, objects, "ValidatingAdmissionPolicyBinding")
		for _, b := range bindings {
			if diff := cmp.Diff(want, b.Spec.MatchResources.NamespaceSelector.MatchExpressions); diff != "" {
				t.Errorf("%s: -want +got:\n%s", b.Name, diff)
			}
		}
		args := manager(t, objects).Spec.Template.Spec.Containers[0].Args
		if !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--exclude-namespaces=kube-system") }) || len(bindings) == 0 {
			t.Errorf("%s: %d bindings, and the operator is given %v", values, len(bindings), args)
		}
	}
}

// A refusal is denied and stands in the audit log.
func TestRefusalsAreAudited(t *testing.T) {
	want := []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny, admissionregistrationv1.Audit}
	for _, b := range all[admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, template(t, "prod", ""), "ValidatingAdmissionPolicyBinding") {
		if diff := cmp.Diff(want, b.Spec.ValidationActions); diff != "" {
			t.Errorf("%s: -want +got:\n%s", b.Name, diff)
		}
	}
}

func watched(b admissionregistrationv1.ValidatingAdmissionPolicyBinding) []string {
	if b.Spec.MatchResources == nil {
		return nil
	}
	return b.Spec.MatchResources.NamespaceSelector.MatchExpressions[0].Values
}

// Kubernetes 1.36 has the kind of the policy; helm is told of it, as by a cluster.
func TestManagedFieldsAreDroppedWhereTheClusterCan(t *testing.T) {
	const kind, has = "MutatingAdmissionPolicy", "--api-versions=admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
	names := []string{"prod-deckhand-run-managed-fields", "prod-deckhand-runner-pod-managed-fields"}
	var both []string
	for _, of := range []string{kind, kind + "Binding"} {
		for _, name := range names {
			both = append(both, of+" "+name)
		}
	}
	cases := map[string]struct {
		values string
		flags  []string
		want   []string
	}{
		"the cluster has such policies": {flags: []string{has}, want: both},
		"it has none":                   {},
		"they are not wanted":           {values: "policies: {dropManagedFields: false}", flags: []string{has}},
		"policies are not installed":    {values: "policies: {install: false}", flags: []string{has}},
		"two namespaces are watched":    {values: "watchNamespaces: [a, b]", flags: []string{has}, want: both},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out, err := tryTemplate(t, "prod", tc.values, tc.flags...)
			if err != nil {
				t.Fatal(err)
			}
			objects := only(parse(t, out), kind, kind+"Binding")
			if diff := cmp.Diff(tc.want, ids(objects)); diff != "" && len(objects)+len(tc.want) > 0 {
				t.Errorf("objects: -want +got:\n%s", diff)
			}
			for _, b := range all[admissionregistrationv1.MutatingAdmissionPolicyBinding](t, objects, kind+"Binding") {
				if b.Spec.PolicyName != b.Name || !slices.Contains(names, b.Name) || (b.Spec.MatchResources != nil) != strings.Contains(tc.values, "watchNamespaces") {
					t.Errorf("the binding is %+v", b.Spec)
				}
			}
		})
	}
}

// The chart changes the names of the policies, and of the operator and of the role for users in them,
// and none of their rules.
func TestPoliciesAreThoseOfTheirFiles(t *testing.T) {
	const kind = "ValidatingAdmissionPolicy"
	for name, tc := range map[string]struct{ values, operators string }{
		"the operator":                   {"", "['system:serviceaccount:deckhand-system:prod-deckhand']"},
		"the operator and a backup tool": {"policies: {trustedUsers: ['system:serviceaccount:velero:velero']}", "['system:serviceaccount:deckhand-system:prod-deckhand','system:serviceaccount:velero:velero']"},
	} {
		t.Run(name, func(t *testing.T) {
			charted := map[string]admissionregistrationv1.ValidatingAdmissionPolicySpec{}
			for _, p := range all[admissionregistrationv1.ValidatingAdmissionPolicy](t, template(t, "prod", tc.values), kind) {
				charted[p.Name] = p.Spec
			}
			for _, want := range all[admissionregistrationv1.ValidatingAdmissionPolicy](t, read(t, "policy"), kind) {
				inRelease(&want.Spec, tc.operators)
				if diff := cmp.Diff(want.Spec, charted["prod-"+want.Name]); diff != "" {
					t.Errorf("%s: -want +got:\n%s", want.Name, diff)
				}
			}
		})
	}
}

// inRelease puts the operators and the role for users of a release into a policy of a file.
func inRelease(policy *admissionregistrationv1.ValidatingAdmissionPolicySpec, operators string) {
	for i := range policy.MatchConditions {
		policy.MatchConditions[i].Expression = named(policy.MatchConditions[i].Expression, operators)
	}
	for i := range policy.Variables {
		policy.Variables[i].Expression = named(policy.Variables[i].Expression, operators)
	}
	for i := range policy.Validations {
		policy.Validations[i].Message = named(policy.Validations[i].Message, operators)
	}
}

// named puts the operators and the role for users of a release into an expression of a file.
func named(expression, operators string) string {
	return strings.NewReplacer("== 'system:serviceaccount:deckhand-system:deckhand'", "== 'system:serviceaccount:deckhand-system:prod-deckhand'", "['system:serviceaccount:deckhand-system:deckhand']", operators, "deckhand-user", "prod-deckhand-user").Replace(expression)
}

// What the chart adds to the kinds is labels and annotations.
func TestKindsAreThoseOfTheirFiles(t *testing.T) {
	charted := map[string]any{}
	for _, o := range only(template(t, "prod", ""), "CustomResourceDefinition") {
		charted[o.Metadata.Name] = as[map[string]any](t, o)["spec"]
	}
	for _, o := range only(read(t, "crd"), "CustomResourceDefinition") {
		if diff := cmp.Diff(as[map[string]any](t, o)["spec"], charted[o.Metadata.Name]); diff != "" {
			t.Errorf("%s: -want +got:\n%s", o.Metadata.Name, diff)
		}
	}
}

func TestNamesCarryTheRelease(t *testing.T) {
	eachInstall(t, func(t *testing.T, objects []object) {
		for _, o := range objects {
			shared := o.Kind == "CustomResourceDefinition" || o.Metadata.Name == "deckhand-runner" && o.Metadata.Namespace != ""
			if !shared && !strings.HasPrefix(o.Metadata.Name, "prod-deckhand") {
				t.Errorf("%s does not carry the release's name", o.id())
			}
		}
		if args := manager(t, objects).Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--policy-prefix=prod-deckhand") {
			t.Errorf("args = %v, want --policy-prefix=prod-deckhand", args)
		}
	})
}

func TestTwoReleasesLiveSideBySide(t *testing.T) {
	first := ids(template(t, "first", "watchNamespaces: [team-a]"))
	second := ids(template(t, "second", "{watchNamespaces: [team-b], crds: {install: false}}"))
	for _, id := range second {
		if slices.Contains(first, id) {
			t.Errorf("both releases have %s", id)
		}
	}
}

func TestValuesShowInTheDeployment(t *testing.T) {
	pod := manager(t, template(t, "prod", everything(t))).Spec.Template
	c := pod.Spec.Containers[0]
	const digest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	if want := "mirror.example:5000/hub/deckhand/manager@" + digest; c.Image != want {
		t.Errorf("image = %s, want %s: the digest wins, and the mirror has it", c.Image, want)
	}
	wantArgs := []string{
		"--runner-image=registry.example:5000/deckhand/runner:v9",
		"--runner-pull-policy=Never",
		"--pod-user=Cluster",
		"--container-limits=cpu=2,ephemeral-storage=2Gi",
		"--container-requests=cpu=50m",
		"--default-run-ttl=48h",
		"--default-durability=Volume",
		"--image-mirror=mirror.example:5000/hub",
		"--runner-image-pull-secrets=mirror,hub",
		"--runner-ca-bundle=company-ca/bundle.pem",
		"--runner-http-proxy=http://proxy.example:3128",
		"--runner-https-proxy=http://proxy.example:3129",
		"--runner-no-proxy=10.0.0.0/8,.example",
		"--prices-file=/etc/deckhand/prices/prices.yaml",
		"--prices-source=ConfigMap deckhand-system/list-prices",
		"--traces-endpoint=http://collector.monitoring.svc:4318",
		"--traces-content",
		"--network-policies",
		"--network-policies-api-server=Ports",
		"--network-check=prod-deckhand-check.$(POD_NAMESPACE).svc:20471",
		"--watch-namespaces=team-a,team-b",
		"--exclude-namespaces=kube-system",
		"--concurrent-runs=32",
		"--concurrent-schedules=2",
		"--concurrent-workflow-runs=8",
		"--leader-elect",
		"--metrics-bind-address=:8080",
		"--metrics-authentication",
		"--pprof-address=127.0.0.1:6060",
		"--health-probe-bind-address=:8081",
		"--policy-prefix=prod-deckhand",
		"--log-level=debug",
		"--operator-namespace=$(POD_NAMESPACE)",
	}
	if diff := cmp.Diff(wantArgs, c.Args); diff != "" {
		t.Errorf("args: -want +got:\n%s", diff)
	}
	set := map[string]bool{
		"imagePullPolicy":           c.ImagePullPolicy == corev1.PullAlways,
		"extraEnv":                  c.Env[2].Name == "HTTPS_PROXY",
		"resources":                 c.Resources.Limits.Memory().String() == "2Gi",
		"imagePullSecrets":          pod.Spec.ImagePullSecrets[0].Name == "registry",
		"podAnnotations":            pod.Annotations["example.com/scrape"] == "true",
		"podLabels":                 pod.Labels["example.com/team"] == "platform",
		"nodeSelector":              pod.Spec.NodeSelector["kubernetes.io/arch"] == "amd64",
		"tolerations":               len(pod.Spec.Tolerations) == 1,
		"affinity":                  pod.Spec.Affinity != nil,
		"topologySpreadConstraints": len(pod.Spec.TopologySpreadConstraints) == 1,
		"priorityClassName":         pod.Spec.PriorityClassName == "system-cluster-critical",
		"catalog.configMapRef":      mountsPrices(pod.Spec),
	}
	for value, shows := range set {
		if !shows {
			t.Errorf("%s has no effect", value)
		}
	}
}

// mountsPrices reports whether a pod mounts the list of prices where the flag has it, and starts
// without it.
func mountsPrices(pod corev1.PodSpec) bool {
	if len(pod.Volumes) != 1 || len(pod.Containers[0].VolumeMounts) != 1 {
		return false
	}
	v, mount := pod.Volumes[0], pod.Containers[0].VolumeMounts[0]
	m := v.ConfigMap
	return m != nil && m.Name == "list-prices" && *m.Optional && len(m.Items) == 1 && m.Items[0].Key == "prices.yml" && m.Items[0].Path == "prices.yaml" &&
		mount.Name == v.Name && mount.ReadOnly && mount.MountPath == "/etc/deckhand/prices"
}

func TestNetworkPoliciesMayBeLeftOut(t *testing.T) {
	objects := template(t, "prod", "{networkPolicies: {enabled: false}, watchNamespaces: [team-a]}")
	for _, arg := range manager(t, objects).Spec.Template.Spec.Containers[0].Args {
		if strings.HasPrefix(arg, "--network-policies") {
			t.Errorf("args have %s", arg)
		}
	}
	for _, role := range roles(t, objects) {
		for _, rule := range role.Rules {
			if role.Namespace == "" && slices.Contains(rule.Resources, "endpointslices") {
				t.Errorf("%s may %v %v", role.Name, rule.Verbs, rule.Resources)
			}
		}
	}
}

// The operator finds mirrored images by the same rules as the chart.
func TestTheOperatorComesFromTheMirror(t *testing.T) {
	for repository, want := range map[string]string{
		"ghcr.io/deckhand-dev/manager":   "m.example/hub/deckhand-dev/manager:v1",
		"localhost:5000/manager":         "m.example/hub/manager:v1",
		"deckhand-dev/manager":           "m.example/hub/deckhand-dev/manager:v1",
		"manager":                        "m.example/hub/library/manager:v1",
		"docker.io/manager":              "m.example/hub/library/manager:v1",
		"m.example/hub/deckhand/manager": "m.example/hub/deckhand/manager:v1",
	} {
		objects := template(t, "prod", "{imageMirror: m.example/hub, image: {tag: v1, repository: "+repository+"}}")
		if got := manager(t, objects).Spec.Template.Spec.Containers[0].Image; got != want {
			t.Errorf("%s comes from %s, want %s", repository, got, want)
		}
	}
}

func TestDisruptionBudgetFromTwoReplicas(t *testing.T) {
	for replicas, want := range map[string]int{"1": 0, "2": 1} {
		budgets := all[policyv1.PodDisruptionBudget](t, template(t, "prod", "replicas: "+replicas), "PodDisruptionBudget")
		if len(budgets) != want {
			t.Errorf("%s replicas: %d budgets, want %d", replicas, len(budgets), want)
		}
	}
}

func TestKindsStayUnlessKeepIsFalse(t *testing.T) {
	for values, want := range map[string]string{"": "keep", "crds: {keep: false}": ""} {
		kinds := only(template(t, "prod", values), "CustomResourceDefinition")
		if len(kinds) == 0 {
			t.Fatalf("with %q no kinds are installed", values)
		}
		for _, o := range kinds {
			if got := o.Metadata.Annotations["helm.sh/resource-policy"]; got != want {
				t.Errorf("with %q %s has resource-policy %q, want %q", values, o.id(), got, want)
			}
		}
	}
}

func TestBadValuesAreRefused(t *testing.T) {
	cases := map[string]struct{ values, want string }{
		"a misspelled value":           {"replica: 2", "additional properties 'replica' not allowed"},
		"a misspelled nested value":    {"runner: {image: {tags: v1}}", "at '/runner/image': additional properties 'tags' not allowed"},
		"no replicas":                  {"replicas: 0", "at '/replicas': minimum: got 0, want 1"},
		"a namespace for a list":       {"watchNamespaces: team-a", "at '/watchNamespaces': got string, want array"},
		"an impossible namespace":      {"watchNamespaces: [Team_A]", "at '/watchNamespaces/0': 'Team_A' does not match pattern"},
		"a namespace twice":            {"watchNamespaces: [a, a]", "at '/watchNamespaces': items at 0 and 1 are equal"},
		"an unknown log level":         {"logLevel: trace", "at '/logLevel': value must be one of 'info', 'debug'"},
		"half a digest":                {"image: {digest: sha256:abc}", "at '/image/digest': 'sha256:abc' does not match pattern"},
		"an unknown pull policy":       {"image: {pullPolicy: always}", "at '/image/pullPolicy': value must be one of"},
		"a mirror that is a URL":       {"imageMirror: https://mirror.example", `imageMirror is "https://mirror.example": write a registry without https:// and without a slash at the end, for example mirror.example/hub`},
		"a proxy with a password":      {"runner: {proxy: {http: http://me:secret@proxy.example}}", "runner.proxy.http must be a URL without a user and a password: write for example http://proxy.example:3128"},
		"a proxy without a scheme":     {"runner: {proxy: {https: 'proxy:3128'}}", "runner.proxy.https must be a URL"},
		"a mirror with a slash":        {"imageMirror: mirror.example/", "without a slash at the end"},
		"a Secret by its name":         {"imagePullSecrets: [regcred]", `imagePullSecrets has the text "regcred": write imagePullSecrets: [{name: regcred}], or --set 'imagePullSecrets[0].name=regcred'`},
		"a Secret of the runner":       {"runner: {imagePullSecrets: [{name: a}, b]}", "runner.imagePullSecrets[1].name=b"},
		"memory without a unit":        {"resources: {limits: {memory: 256}}", "resources.limits.memory is 256, which is a number of bytes: write 256Mi"},
		"memory in a text":             {"resources: {requests: {memory: '64'}}", "resources.requests.memory is 64, which is a number of bytes: write 64Mi"},
		"memory in GB":                 {"resources: {limits: {memory: 1GB}}", `resources.limits.memory is "1GB", which is no quantity: write for example 256Mi`},
		"a CPU in words":               {"resources: {limits: {cpu: half}}", `resources.limits.cpu is "half", which is no quantity: write for example 500m`},
		"a collector without a scheme": {"traces: {endpoint: 'collector:4317'}", `traces.endpoint is "collector:4317": write the URL of a collector of OTLP over HTTP, whose port is 4318 in most installations (4317 is gRPC), for example http://collector.monitoring:4318`},
		"another way to the API":       {"networkPolicies: {enabled: true, apiServer: Everywhere}", "at '/networkPolicies/apiServer': value must be one of"},
		"a collector with no host":     {"traces: {endpoint: 'http://:4318'}", `traces.endpoint is "http://:4318": write the URL`},
		"a port that is a name":        {"traces: {endpoint: 'http://c:otlp'}", `traces.endpoint is "http://c:otlp": write the URL`},
		"an impossible port":           {"traces: {endpoint: 'http://c:65536'}", `traces.endpoint is "http://c:65536": write the URL`},
		"the path that is added":       {"traces: {endpoint: 'http://c:4318/v1/traces'}", "leave out the path /v1/traces"},
		"content for no collector":     {"traces: {content: true}", "at '/traces/endpoint': minLength: got 0, want 1"},
		"an image with its tag":        {"image: {repository: 'ghcr.io/me/manager:v1'}", "at '/image/repository': 'ghcr.io/me/manager:v1' does not match pattern"},
		"policies where Runs start":    {"{watchNamespaces: [a], policies: {install: true, excludeNamespaces: [a]}}", "remove it from one of them"},
		"another name for the pod":     {"extraEnv: [{name: POD_NAME, value: x}]", "at '/extraEnv/0/name': 'not' failed"},
		"a TTL in days":                {"runDefaults: {ttl: 7d}", `runDefaults.ttl is "7d": write hours, minutes or seconds, for example 168h for a week, or "" for never`},
		"a durability of our own":      {"runDefaults: {durability: Disk}", "at '/runDefaults/durability': value must be one of 'Pod', 'Volume'"},
		"resources in words":           {"resources: {limits: {memory: much}}", `resources.limits.memory is "much", which is no quantity`},
		"half an IPv6 address":         {"traces: {endpoint: 'http://[::1'}", `traces.endpoint is "http://[::1": write the URL`},
		"an alert without a limit":     {"monitoring: {alerts: {costPerHourUSD: null}}", "at '/monitoring/alerts': missing property 'costPerHourUSD'"},
		"a number as an annotation":    {"podAnnotations: {a: 1}", "at '/podAnnotations/a': got number, want string"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := tryTemplate(t, "prod", tc.values); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want one that contains %q", err, tc.want)
			}
		})
	}
}

func TestGoodValuesOfTheSameKindAreTaken(t *testing.T) {
	for _, values := range []string{
		"imageMirror: 'mirror.example:5000/hub/a'", "runner: {proxy: {http: 'http://proxy:3128', https: ''}}", "imagePullSecrets: [{name: regcred}]",
		"traces: {endpoint: 'http://[::1]:4318/otlp', metrics: true}", "traces: {endpoint: 'https://c'}",
		"resources: {limits: {memory: 268435456, cpu: 2}, requests: {cpu: 0.5, memory: 1e9}}", "resources: {limits: {memory: 1.5Gi, cpu: 500m}}",
	} {
		if _, err := tryTemplate(t, "prod", values); err != nil {
			t.Errorf("%s: %v", values, err)
		}
	}
}

// The chart installs on the version that make test-oldest builds, and on none before.
func TestOldestKubernetesIsTheOneThatIsTested(t *testing.T) {
	modules, err := os.ReadFile(filepath.Join("..", "oldest", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`k8s\.io/kubernetes v1\.(\d+)\.`).FindSubmatch(modules)
	if found == nil {
		t.Fatal("test/oldest/go.mod does not require k8s.io/kubernetes")
	}
	oldest, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("chart requires kubeVersion: >=1.%d.0-0", oldest)
	if _, err := tryTemplate(t, "prod", "", fmt.Sprintf("--kube-version=1.%d.9", oldest-1)); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error = %v, want one that contains %q", err, want)
	}
	if _, err := tryTemplate(t, "prod", "", fmt.Sprintf("--kube-version=v1.%d.4-eks-1", oldest)); err != nil {
		t.Error(err)
	}
	for _, page := range []string{"README.md", "SCOPE.md", "docs/operations.md"} {
		text, err := os.ReadFile(filepath.Join("..", "..", page))
		if err != nil {
			t.Fatal(err)
		}
		if says := fmt.Sprintf("Kubernetes 1.%d or newer", oldest); !strings.Contains(string(text), says) {
			t.Errorf("%s does not say %q", page, says)
		}
	}
}
