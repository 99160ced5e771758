//go:build e2e

package e2e

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The fixtures of the coding stories work without an agent: files on a claim outlive a pod,
// and commands in the toolbox clone, test, commit and push as an unprivileged user.
func TestToolboxAndGitServer(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	url := p.serveGit()
	p.create(claimOf("work", "1Gi"))
	log := p.work("first", "work", `set -e
		git clone -q "http://$GIT_USER:$GIT_PASSWORD@`+strings.TrimPrefix(url, "http://")+`" app
		cd app
		go test ./... && exit 1
		sed -i 's/(high - hour) % 12/((high-hour)%12 + 12) % 12/' tide.go
		go test ./...
		python3 -c 'import json, sys; print(json.dumps(sys.version_info[0]))'
		id -u`)
	if !strings.Contains(log, "want 3") || !strings.HasSuffix(log, "3\n65532\n") {
		t.Errorf("the first pod says:\n%s", log)
	}
	p.work("second", "work", `set -e
		cd app
		go test ./...
		git -c user.name=dev -c user.email=dev@example.com commit -qam 'Mend it'
		git push -q origin HEAD:refs/heads/mended`)
	said := p.gitLog()
	if len(said.Pushes) != 1 || said.Pushes[0].Ref != "refs/heads/mended" || said.Refused == 0 {
		t.Errorf("the git server says %+v", said)
	}
}

// claimOf is a claim of the default StorageClass.
func claimOf(name, size string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)},
			},
		},
	}
}

// work runs a script in the toolbox on a claim, as restricted as can be, until it
// ends well, and returns what it printed. The pod is gone after that.
func (p *testNamespace) work(name, claim, script string) string {
	p.t.Helper()
	yes, user := true, int64(65532)
	template := deployment(metav1.ObjectMeta{}).Spec.Template.Spec
	template.RestartPolicy = corev1.RestartPolicyNever
	template.SecurityContext.FSGroup = &user
	c := &template.Containers[0]
	c.Name, c.Image, c.Args, c.ReadinessProbe = name, imageOf("toolbox"), nil, nil
	c.Command, c.WorkingDir = []string{"bash", "-c", script}, "/claim"
	c.SecurityContext.ReadOnlyRootFilesystem = &yes
	c.Env = append(gitUser(), corev1.EnvVar{Name: "HOME", Value: "/claim/home"}, corev1.EnvVar{Name: "TMPDIR", Value: "/tmp"})
	c.VolumeMounts = []corev1.VolumeMount{{Name: "work", MountPath: "/claim"}, {Name: "tmp", MountPath: "/tmp"}}
	template.Volumes = []corev1.Volume{
		{Name: "work", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}},
		{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: template}
	p.create(pod)
	err := until(p.t.Context(), func(ctx context.Context) (bool, error) {
		err := cluster.admin.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed, err
	})
	log := p.log(p.t.Context(), name)
	if err != nil || pod.Status.Phase != corev1.PodSucceeded {
		p.t.Fatalf("pod %s is %s (%v) and says:\n%s", name, pod.Status.Phase, err, log)
	}
	p.killPod(pod)
	return log
}
