package runnerpod

// A RequiredConfigMap is one that a user names and that a pod mounts: the kubelet does not start
// the containers before it exists.
type RequiredConfigMap struct {
	Name string
	// Key must be in it; empty: any will do.
	Key string
	// Field is where it is named, and of what.
	Field string
}

// RequiredConfigMaps returns the ConfigMaps without which the containers of a pod do not start.
// That of the revision is not among them: the operator stores it again.
func RequiredConfigMaps(in Input) []RequiredConfigMap {
	b := newBuilder(in)
	var out []RequiredConfigMap
	for _, name := range in.Revision.Agent.Workspace.ConfigMaps {
		out = append(out, RequiredConfigMap{Name: name, Field: "spec.workspace.files of the Agent"})
	}
	if ca := b.defaults.CABundle; ca != nil {
		field := "runner.caBundleConfigMapRef of the chart"
		if b.template.CABundle != nil {
			field = "spec.podTemplate.caBundleConfigMapRef of the Agent"
		}
		out = append(out, RequiredConfigMap{Name: string(ca.Name), Key: ca.Key, Field: field})
	}
	return out
}
