package stored

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// AgentOf is the stored form of an Agent and of the Toolsets that it uses, by name.
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
