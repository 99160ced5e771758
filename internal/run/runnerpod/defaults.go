package runnerpod

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/stored"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Defaults is where an installation's pods get their images and how they reach the
// outside. An Agent's podTemplate goes over it.
type Defaults struct {
	// User is who chooses the user and the groups of pods; empty: Deckhand.
	User PodUser
	// Resources are those of every container, in place of the standard ones of the same name.
	Resources corev1.ResourceRequirements
	// ImageMirror replaces the registry of every image; empty: none.
	ImageMirror string
	// ImagePullSecrets are for all images.
	ImagePullSecrets []string
	// CABundle is trusted beside the usual certificates; nil: none.
	CABundle *v1alpha1.ConfigMapKeyRef
	// Proxy is the way out; nil: there is none in between.
	Proxy *v1alpha1.Proxy
	// Traces is where runners send spans; nil: nowhere.
	Traces *task.Traces
	// NetworkCheck is the host and port at which the operator helps runners to find out whether
	// NetworkPolicies are enforced; empty: nowhere.
	NetworkCheck string
}

// withTemplate is a supply with what a template says instead.
func (s Defaults) withTemplate(t stored.PodTemplate) Defaults {
	s.ImageMirror = cmp.Or(t.ImageMirror, s.ImageMirror)
	if c := t.CABundle; c != nil {
		s.CABundle = &v1alpha1.ConfigMapKeyRef{Name: v1alpha1.ObjectName(c.Name), Key: c.Key}
	}
	if p := t.Proxy; p != nil {
		s.Proxy = &v1alpha1.Proxy{HTTP: p.HTTP, HTTPS: p.HTTPS, NoProxy: p.NoProxy}
	}
	return s
}

// standard returns the resources of a container that the Agent says nothing of. A request is at
// most its limit: the limit of the installation lowers a request, its request raises a limit.
func (s Defaults) standard(own corev1.ResourceRequirements) corev1.ResourceRequirements {
	out := *own.DeepCopy()
	maps.Copy(out.Requests, s.Resources.Requests)
	maps.Copy(out.Limits, s.Resources.Limits)
	for name, limit := range out.Limits {
		request, requested := out.Requests[name]
		if !requested || request.Cmp(limit) <= 0 {
			continue
		}
		if _, chosen := s.Resources.Limits[name]; chosen {
			out.Requests[name] = limit
		} else {
			out.Limits[name] = request
		}
	}
	return out
}

// pullSecrets are those of the template and, after them, of the installation.
func (s Defaults) pullSecrets(t stored.PodTemplate) []corev1.LocalObjectReference {
	out := slices.Clone(t.ImagePullSecrets)
	for _, name := range s.ImagePullSecrets {
		ref := corev1.LocalObjectReference{Name: name}
		if !slices.Contains(out, ref) {
			out = append(out, ref)
		}
	}
	return out
}

// PullSecrets returns the names of the Secrets with which the images of a pod are pulled.
func PullSecrets(in Input) []string {
	b := newBuilder(in)
	var out []string
	for _, ref := range b.defaults.pullSecrets(b.template) {
		out = append(out, ref.Name)
	}
	return out
}

// mirroredImage is where a mirror has an image: under its name without the registry.
// What comes from the mirror already stays as it is.
func mirroredImage(image, mirror string) string {
	mirror = strings.TrimRight(mirror, "/")
	if mirror == "" || strings.HasPrefix(image, mirror+"/") {
		return image
	}
	registry, rest, found := strings.Cut(image, "/")
	switch {
	case !found:
		return mirror + "/library/" + image
	case !isRegistry(registry):
		return mirror + "/" + image
	case registry == "docker.io" || registry == "index.docker.io":
		if !strings.Contains(rest, "/") {
			rest = "library/" + rest
		}
	}
	return mirror + "/" + rest
}

// isRegistry tells a registry from a folder, as every engine does.
func isRegistry(part string) bool {
	return strings.ContainsAny(part, ".:") || part == "localhost"
}

// inCluster are hosts that no proxy is asked for. The kubelet puts the API
// server's address in.
const inCluster = "localhost,127.0.0.1,.svc,.cluster.local,$(KUBERNETES_SERVICE_HOST)"

// proxyEnv returns the variables that Go and most other programs read.
func (s Defaults) proxyEnv() []corev1.EnvVar {
	if s.Proxy == nil {
		return nil
	}
	plain, secure := s.Proxy.HTTP, cmp.Or(s.Proxy.HTTPS, s.Proxy.HTTP)
	none := inCluster
	if own := s.Proxy.NoProxy; own != "" {
		none += "," + literal(own)
	}
	var out []corev1.EnvVar
	for _, e := range []corev1.EnvVar{{Name: "HTTP_PROXY", Value: literal(plain)}, {Name: "HTTPS_PROXY", Value: literal(secure)}} {
		if e.Value != "" {
			out = append(out, e)
		}
	}
	return append(out, corev1.EnvVar{Name: "NO_PROXY", Value: none})
}

// literal keeps a kubelet from reading $(NAME) in a value.
func literal(value string) string { return strings.ReplaceAll(value, "$", "$$") }
