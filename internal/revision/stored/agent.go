package stored

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// Agent is the part of a revision of an Agent that the operator reads. The rest is in the snapshot for the runner,
// which has its own version.
type Agent struct {
	Version int    `json:"version"`
	Name    string `json:"name"`
	// Pending and Deadline are the limits that only the operator enforces.
	Pending  *metav1.Duration `json:"pending,omitempty"`
	Deadline *metav1.Duration `json:"deadline,omitempty"`
	// PodRetention is how long a pod stays after its Run has finished.
	PodRetention *metav1.Duration `json:"podRetention,omitempty"`
	Workspace    Workspace        `json:"workspace"`
	// Sandbox is set if the Agent has a sandbox; the snapshot shows whether it is needed.
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
	// ConfigMaps are the ConfigMaps whose keys are copied into the workspace, in order.
	ConfigMaps []string `json:"configMaps,omitempty"`
}

// Retain is the condition under which a PersistentVolumeClaim is kept for a while after the Run has finished. The
// annotation of the claim has it too.
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

// Sandbox is the part of a sandbox that the operator reads.
type Sandbox struct {
	Env           []Variable                   `json:"env,omitempty"`
	Resources     *corev1.ResourceRequirements `json:"resources,omitempty"`
	AllowInjected []string                     `json:"allowInjected,omitempty"`
}

// Variable is an environment variable. Its value is Value, or the value of a key of a Secret.
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

// PodTemplate has the Agent's settings for its pods.
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

// AgentOf returns the stored form of an Agent and of the Toolsets that it uses, by name.
func AgentOf(name string, spec v1alpha1.AgentSpec, toolsets map[string]v1alpha1.ToolsetSpec) Agent {
	out := Agent{
		Version:      Version,
		Name:         name,
		Pending:      durationOf(spec.Limits.Pending),
		Deadline:     durationOf(spec.Limits.Deadline),
		PodRetention: durationOf(&spec.Retention.Pod),
		Workspace:    workspaceOf(spec.Workspace, spec.Retention),
		PodTemplate:  podTemplateOf(spec.PodTemplate),
	}
	if s := spec.Sandbox; s != nil {
		out.Sandbox = &Sandbox{Resources: s.Resources, AllowInjected: s.AllowInjected}
		for _, v := range s.Env {
			out.Sandbox.Env = append(out.Sandbox.Env, Variable{Name: v.Name, Value: v.Value})
		}
	}
	for toolset, spec := range toolsets {
		if s := spec.Stdio; s != nil && s.Container != nil {
			if out.Servers == nil {
				out.Servers = map[string]Server{}
			}
			out.Servers[toolset] = serverOf(*s)
		}
	}
	return out
}

func workspaceOf(w v1alpha1.Workspace, r v1alpha1.Retention) Workspace {
	out := Workspace{
		Durable:          w.Durability == v1alpha1.DurabilityVolume,
		Size:             w.Size,
		StorageClassName: w.StorageClassName,
		AccessMode:       corev1.PersistentVolumeAccessMode(w.AccessMode),
		Retain:           RetainAlways,
		Retention:        durationOf(r.Volume),
	}
	switch r.KeepVolume {
	case v1alpha1.KeepVolumeOnFailure:
		out.Retain = RetainOnFailure
	case v1alpha1.KeepVolumeNever:
		out.Retain = RetainNever
	case v1alpha1.KeepVolumeAlways:
	}
	for _, f := range w.Files {
		out.ConfigMaps = append(out.ConfigMaps, string(f.ConfigMapRef.Name))
	}
	return out
}

func serverOf(s v1alpha1.StdioServer) Server {
	out := Server{Image: s.Container.Image, MountsWorkspace: s.Container.Workspace == v1alpha1.WorkspaceAccessReadOnly}
	for _, v := range s.Env {
		variable := Variable{Name: v.Name}
		switch {
		case v.ValueSecretRef != nil:
			variable.Secret = &ObjectKey{Name: string(v.ValueSecretRef.Name), Key: v.ValueSecretRef.Key}
		case v.Value != nil:
			variable.Value = *v.Value
		}
		out.Env = append(out.Env, variable)
	}
	return out
}

func podTemplateOf(t *v1alpha1.PodTemplate) *PodTemplate {
	if t == nil {
		return nil
	}
	out := &PodTemplate{
		RunnerImage:       t.RunnerImage,
		RunAsUser:         t.RunAsUser,
		Labels:            t.Labels,
		Annotations:       t.Annotations,
		ImageMirror:       t.ImageMirror,
		ImagePullSecrets:  t.ImagePullSecrets,
		Resources:         t.Resources,
		NodeSelector:      t.NodeSelector,
		Tolerations:       t.Tolerations,
		Affinity:          t.Affinity,
		TopologySpread:    t.TopologySpreadConstraints,
		HostUsers:         t.HostUsers,
		RuntimeClassName:  t.RuntimeClassName,
		PriorityClassName: t.PriorityClassName,
	}
	if c := t.CABundleConfigMapRef; c != nil {
		out.CABundle = &ObjectKey{Name: string(c.Name), Key: c.Key}
	}
	if p := t.Proxy; p != nil {
		out.Proxy = &Proxy{HTTP: p.HTTP, HTTPS: p.HTTPS, NoProxy: p.NoProxy}
	}
	return out
}

// durationOf parses a duration of the API. A value that the API's schema should have
// refused counts as not set.
func durationOf(d *v1alpha1.Duration) *metav1.Duration {
	if d == nil {
		return nil
	}
	v, err := d.Value()
	if err != nil {
		return nil
	}
	return &metav1.Duration{Duration: v}
}

// Version is the version of the form that this operator writes.
const Version = 1

// The decoders of each kind, by version.
var (
	agents    = decoders[Agent]{1: decodeStrictly[Agent]}
	workflows = decoders[Workflow]{1: decodeStrictly[Workflow]}
)

// DecodeAgent decodes a document of any version that this operator reads. The error is
// an *UnsupportedError if the operator does not understand all of it.
func DecodeAgent(data []byte) (Agent, error) { return agents.decode("stored revision", data) }

// DecodeWorkflow is DecodeAgent for a Workflow.
func DecodeWorkflow(data []byte) (Workflow, error) { return workflows.decode("stored revision", data) }

// DecodeVersion decodes a document of another versioned form whose versions 1 to newest have the same Go type. Errors
// name the form by the text what.
func DecodeVersion[T any](what string, newest int, data []byte) (T, error) {
	d := decoders[T]{}
	for v := range newest {
		d[v+1] = decodeStrictly[T]
	}
	return d.decode(what, data)
}

// decoders decode the documents of one kind, by version. A decoder of an old version
// converts to the newest.
type decoders[T any] map[int]func([]byte) (T, error)

func (d decoders[T]) decode(what string, data []byte) (T, error) {
	var none T
	var header struct {
		Version int `json:"version"`
	}
	versions := slices.Sorted(maps.Keys(d))
	unsupported := &UnsupportedError{What: what, Oldest: versions[0], Newest: versions[len(versions)-1]}
	if unsupported.Err = json.Unmarshal(data, &header); unsupported.Err != nil {
		return none, unsupported
	}
	unsupported.Version = header.Version
	decode := d[header.Version]
	if decode == nil {
		return none, unsupported
	}
	out, err := decode(data)
	if err != nil {
		unsupported.Err = err
		return none, unsupported
	}
	return out, nil
}

// decodeStrictly decodes valid JSON. An unknown field is an error: only a newer operator can have written it, and
// ignoring it could change what the Run does.
func decodeStrictly[T any](data []byte) (T, error) {
	var out T
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(&out)
	return out, err
}

// An UnsupportedError means that this operator cannot read a document, or not all of it.
type UnsupportedError struct {
	// What names the form. Version is the version of the document; Oldest and Newest are the versions that this
	// operator reads.
	What                    string
	Version, Oldest, Newest int
	// Err is the error of decoding a version that the operator reads.
	Err error
}

// IsNewer reports whether a newer operator wrote the document. It can read it still.
func (e *UnsupportedError) IsNewer() bool { return e.Version >= e.Oldest }

func (e *UnsupportedError) Error() string {
	switch {
	case e.Err != nil:
		return fmt.Sprintf("the %s (version %d) has content that this operator does not know: %v", e.What, e.Version, e.Err)
	case e.IsNewer():
		return fmt.Sprintf("the %s has version %d, of a newer operator; this operator reads versions up to %d", e.What, e.Version, e.Newest)
	}
	return fmt.Sprintf("the %s has version %d, of an older operator; this operator reads versions from %d", e.What, e.Version, e.Oldest)
}

func (e *UnsupportedError) Unwrap() error { return e.Err }
