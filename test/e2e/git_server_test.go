//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// gitName is what the git server and the Secret of its user are called.
const gitName = "git"

// gitPassword is a canary, too.
const gitPassword = "git-e2e-canary-0123456789"

// imageOf is an image of tests: the one of E2E_<PROGRAM>_IMAGE, or the one that
// `make cluster-load` puts on the node.
func imageOf(program string) string {
	return cmp.Or(os.Getenv("E2E_"+strings.ToUpper(program)+"_IMAGE"), "deckhand.test/"+program+":dev")
}

// A gitLog is what happened at the git server; see Log of test/gitserver.
type gitLog struct {
	Pushes []struct {
		Repository, Ref, Old, New string
	}
	Authorizations []struct {
		SHA256   string
		Accepted bool
		Requests int
	}
	Refused, Moved int
}

// serveGit runs the git server in the namespace, and returns the URL of its one
// repository. Its user is in the Secret git, as Kubernetes has such Secrets.
func (p *testNamespace) serveGit() string {
	p.t.Helper()
	labels := map[string]string{"app": gitName}
	meta := metav1.ObjectMeta{Name: gitName, Namespace: p.name, Labels: labels}
	user := map[string]string{corev1.BasicAuthUsernameKey: "dev", corev1.BasicAuthPasswordKey: gitPassword}
	server := deployment(meta)
	furnishGit(&server.Spec.Template.Spec)
	p.create(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: gitName}, Type: corev1.SecretTypeBasicAuth, StringData: user},
		&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
			Selector: labels, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
		}},
		server,
	)
	err := until(p.t.Context(), func(ctx context.Context) (bool, error) { return hasEndpoints(ctx, p.name, gitName) })
	if err != nil {
		p.t.Fatalf("the git server does not run: %v", err)
	}
	return "http://" + gitName + "." + p.name + "/app.git"
}

// furnishGit makes a pod of the git server. The program runs where git is: in
// the toolbox, to which an init container takes it.
func furnishGit(pod *corev1.PodSpec) {
	const tools, root = "/tools", "/srv"
	git := &pod.Containers[0]
	git.Name, git.Image = gitName, imageOf("toolbox")
	git.Command, git.Args = []string{tools + "/gitserver"}, []string{"--listen", ":8080", "--root", root}
	git.Env = gitUser()
	program := corev1.VolumeMount{Name: "tools", MountPath: tools}
	git.VolumeMounts = []corev1.VolumeMount{program, {Name: "root", MountPath: root}}
	pod.InitContainers = []corev1.Container{{
		Name: "install", Image: imageOf("gitserver"), ImagePullPolicy: corev1.PullIfNotPresent,
		Args: []string{"--install", tools + "/gitserver"}, SecurityContext: git.SecurityContext,
		VolumeMounts: []corev1.VolumeMount{program},
	}}
	pod.Volumes = nil
	for _, name := range []string{"tools", "root"} {
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	}
}

// gitUser is the git server's user as variables, where there is such a server.
func gitUser() []corev1.EnvVar {
	var list []corev1.EnvVar
	for name, field := range map[string]string{"GIT_USER": corev1.BasicAuthUsernameKey, "GIT_PASSWORD": corev1.BasicAuthPasswordKey} {
		list = append(list, corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: gitName}, Key: field, Optional: new(true),
		}}})
	}
	return list
}

// gitLog asks the git server what happened.
func (p *testNamespace) gitLog() gitLog {
	p.t.Helper()
	data, err := cluster.api.CoreV1().Services(p.name).ProxyGet("http", gitName, "80", "/log", nil).DoRaw(p.t.Context())
	if err != nil {
		p.t.Fatalf("asking the git server: %v", err)
	}
	var log gitLog
	if err := json.Unmarshal(data, &log); err != nil {
		p.t.Fatalf("reading the git server's log: %v", err)
	}
	return log
}
