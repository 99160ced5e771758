package runnerpod

import (
	"cmp"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// FilesContainer is the only container of a pod that reads the files of a Run.
const FilesContainer = "files"

// nameOfFilesPod is the value of the label app.kubernetes.io/name.
const nameOfFilesPod = "deckhand-files"

// filesPodSeconds is how long a pod that reads files may run.
const filesPodSeconds int64 = 600

// FilesPod configures a pod that reads the files of a Run. It is an annotation of the claim, because the pods of the
// Run may be deleted when the files are read.
type FilesPod struct {
	Image            string                        `json:"image,omitempty"`
	ImagePullPolicy  corev1.PullPolicy             `json:"imagePullPolicy,omitempty"`
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
	RunAsUser        int64                         `json:"runAsUser,omitempty"`
	// User is Cluster if the cluster chooses the user; otherwise the user is RunAsUser.
	User         PodUser             `json:"user,omitempty"`
	NodeSelector map[string]string   `json:"nodeSelector,omitempty"`
	Tolerations  []corev1.Toleration `json:"tolerations,omitempty"`
	// Resources are the resources of its container; nil: the standard ones of runners.
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// Owner is the recorded owner of the files, or nil.
	Owner *FileOwner `json:"-"`
}

func filesPodOf(in Input) FilesPod {
	b := newBuilder(in)
	runner := b.runner()
	f := FilesPod{
		Image:            runner.Image,
		ImagePullPolicy:  runner.ImagePullPolicy,
		ImagePullSecrets: b.defaults.pullSecrets(b.template),
		NodeSelector:     b.template.NodeSelector,
		Tolerations:      b.template.Tolerations,
	}
	if chosen := b.defaults.Resources; len(chosen.Requests)+len(chosen.Limits) > 0 {
		f.Resources = new(b.defaults.standard(runnerResources))
	}
	if ids := b.userAndGroups(); ids.group != nil {
		f.RunAsUser = *ids.user
	} else {
		f.User = PodUserCluster
		if ids.user != nil {
			f.RunAsUser = *ids.user
		}
	}
	return f
}

// FilesPodOf returns the configuration of a pod that reads the files on a claim. The image is empty if the claim does
// not have it.
func FilesPodOf(claim *corev1.PersistentVolumeClaim) FilesPod {
	var f FilesPod
	if json.Unmarshal([]byte(claim.Annotations[v1alpha1.AnnotationFilesPod]), &f) != nil {
		f = FilesPod{}
	}
	if f.User != PodUserCluster {
		f.RunAsUser = cmp.Or(f.RunAsUser, uid)
	}
	f.Owner = FileOwnerOf(claim)
	return f
}

func (f FilesPod) resources() corev1.ResourceRequirements {
	if f.Resources == nil {
		return runnerResources
	}
	return *f.Resources
}

// userAndGroups returns the users of the pod: the owner of the files.
func (f FilesPod) userAndGroups() userAndGroups {
	switch {
	case f.User != PodUserCluster:
		return oneUser(f.RunAsUser)
	case f.Owner != nil:
		return f.Owner.asked()
	case f.RunAsUser != 0:
		return userAndGroups{user: &f.RunAsUser}
	}
	return userAndGroups{}
}

// WorkspaceFolder is the folder of a claim with the files of a Run.
const WorkspaceFolder = "workspace"

// EventsFolder returns the folder of a claim with the events of a Run.
func EventsFolder(run *v1alpha1.Run) string {
	state := "state"
	if hasOwnFolder(run) {
		state = task.StateFolder(string(run.UID))
	}
	return state + "/" + task.EventsFolder
}

// Pod returns a pod that waits and mounts only a folder of a claim, read-only. It has no token. If node is not empty,
// it runs on that cluster node. Its name is generated.
func (f FilesPod) Pod(run *v1alpha1.Run, claim, folder, node string) *corev1.Pod {
	no, deadline, grace := false, filesPodSeconds, int64(1)
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:    run.Namespace,
			GenerateName: "deckhand-files-",
			Labels:       map[string]string{"app.kubernetes.io/name": nameOfFilesPod},
			Annotations:  map[string]string{"sidecar.istio.io/inject": "false"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: "Run", Name: run.Name, UID: run.UID,
			}},
		},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			AutomountServiceAccountToken:  &no,
			EnableServiceLinks:            &no,
			ActiveDeadlineSeconds:         &deadline,
			TerminationGracePeriodSeconds: &grace,
			SecurityContext:               podSecurity(f.userAndGroups()),
			ImagePullSecrets:              f.ImagePullSecrets,
			NodeSelector:                  f.NodeSelector,
			Tolerations:                   slices.Clone(f.Tolerations),
			Containers: []corev1.Container{{
				Name:            FilesContainer,
				Image:           f.Image,
				ImagePullPolicy: f.ImagePullPolicy,
				WorkingDir:      f.User.workingDir(),
				Args:            []string{task.FilesMode},
				SecurityContext: containerSecurity(),
				Resources:       f.resources(),
				VolumeMounts:    []corev1.VolumeMount{{Name: volumeOfClaim, MountPath: task.Workspace, SubPath: folder, ReadOnly: true}},
			}},
			Volumes: []corev1.Volume{{Name: volumeOfClaim, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim, ReadOnly: true},
			}}},
		},
	}
	if node != "" {
		pod.Spec.Affinity = onNode(node)
	}
	return pod
}

// IsFilesPod reports whether a pod was created to read the files of a Run.
func IsFilesPod(pod *corev1.Pod, run *v1alpha1.Run) bool {
	return pod.Labels["app.kubernetes.io/name"] == nameOfFilesPod &&
		slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == run.UID })
}

// onNode schedules a pod on a cluster node.
func onNode(node string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{
			Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
		}}}},
	}}}
}
