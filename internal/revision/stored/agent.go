package stored

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Agent is what the operator reads of a revision of an Agent. Everything else is in the
// snapshot for the runner, which has a version of its own.
type Agent struct {
	Version int    `json:"version"`
	Name    string `json:"name"`
	// Pending and Deadline are the limits that only the operator enforces.
	Pending  *metav1.Duration `json:"pending,omitempty"`
	Deadline *metav1.Duration `json:"deadline,omitempty"`
	// PodRetention is how long a pod stays after its Run has finished.
	PodRetention *metav1.Duration `json:"podRetention,omitempty"`
	Workspace    Workspace        `json:"workspace"`
	// Sandbox is set if the Agent has a sandbox; the snapshot says whether it needs one.
	Sandbox     *Sandbox     `json:"sandbox,omitempty"`
	PodTemplate *PodTemplate `json:"podTemplate,omitempty"`
	// Servers are the MCP servers with a container of their own, by Toolset.
	Servers map[string]Server `json:"servers,omitempty"`
}

// Workspace is where the files of a Run are.
type Workspace struct {
	// Durable is true if files and journal are on a PersistentVolumeClaim.
	Durable          bool                              `json:"durable,omitempty"`
	Size             *resource.Quantity                `json:"size,omitempty"`
	StorageClassName *string                           `json:"storageClassName,omitempty"`
	AccessMode       corev1.PersistentVolumeAccessMode `json:"accessMode,omitempty"`
	Retain           Retain                            `json:"retain,omitempty"`
	Retention        *metav1.Duration                  `json:"retention,omitempty"`
	// ConfigMaps are those whose keys are copied into the workspace, in order.
	ConfigMaps []string `json:"configMaps,omitempty"`
}

// Retain says whose PersistentVolumeClaim stays for a while after the Run has finished.
// The annotation of the claim has it too.
type Retain string

// The values of Retain.
const (
	RetainOnFailure Retain = "OnFailure"
	RetainAlways    Retain = "Always"
	RetainNever     Retain = "Never"
)

// UnmarshalText refuses an unknown value.
func (r *Retain) UnmarshalText(text []byte) error {
	switch v := Retain(text); v {
	case RetainOnFailure, RetainAlways, RetainNever:
		*r = v
		return nil
	}
	return fmt.Errorf("unknown value %q of retain", text)
}

// Sandbox is what the operator reads of a sandbox.
type Sandbox struct {
	Env           []Variable                   `json:"env,omitempty"`
	Resources     *corev1.ResourceRequirements `json:"resources,omitempty"`
	AllowInjected []string                     `json:"allowInjected,omitempty"`
}

// Variable is a variable of the environment. Its value is Value, or that of a key of a
// Secret.
type Variable struct {
	Name   string     `json:"name"`
	Value  string     `json:"value,omitempty"`
	Secret *ObjectKey `json:"secret,omitempty"`
}

// ObjectKey names a key of a Secret or a ConfigMap.
type ObjectKey struct {
	Name string `json:"name"`
	Key  string `json:"key"`
}

// Server is an MCP server with a container of its own.
type Server struct {
	Image string     `json:"image"`
	Env   []Variable `json:"env,omitempty"`
	// MountsWorkspace is true if the container can read the files of the Run.
	MountsWorkspace bool `json:"mountsWorkspace,omitempty"`
}

// PodTemplate is what an Agent chooses of its pods.
type PodTemplate struct {
	RunnerImage       string                            `json:"runnerImage,omitempty"`
	RunAsUser         *int64                            `json:"runAsUser,omitempty"`
	Labels            map[string]string                 `json:"labels,omitempty"`
	Annotations       map[string]string                 `json:"annotations,omitempty"`
	CABundle          *ObjectKey                        `json:"caBundle,omitempty"`
	Proxy             *Proxy                            `json:"proxy,omitempty"`
	ImageMirror       string                            `json:"imageMirror,omitempty"`
	ImagePullSecrets  []corev1.LocalObjectReference     `json:"imagePullSecrets,omitempty"`
	Resources         *corev1.ResourceRequirements      `json:"resources,omitempty"`
	NodeSelector      map[string]string                 `json:"nodeSelector,omitempty"`
	Tolerations       []corev1.Toleration               `json:"tolerations,omitempty"`
	Affinity          *corev1.Affinity                  `json:"affinity,omitempty"`
	TopologySpread    []corev1.TopologySpreadConstraint `json:"topologySpread,omitempty"`
	HostUsers         *bool                             `json:"hostUsers,omitempty"`
	RuntimeClassName  *string                           `json:"runtimeClassName,omitempty"`
	PriorityClassName string                            `json:"priorityClassName,omitempty"`
}

// Proxy is the HTTP proxy of a runner.
type Proxy struct {
	HTTP    string `json:"http,omitempty"`
	HTTPS   string `json:"https,omitempty"`
	NoProxy string `json:"noProxy,omitempty"`
}
