package main

import (
	"errors"
	"flag"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/operator"
	"github.com/deckhand-dev/deckhand/internal/run/egress"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// supplyFlags are the flags for images, registries and proxies of all runner pods.
type supplyFlags struct {
	supply       operator.Supply
	podUser      string
	resources    struct{ requests, limits string }
	pullSecrets  string
	caBundle     string
	proxy        v1alpha1.Proxy
	traces       task.Traces
	policies     bool
	letAPIServer string
	networkCheck string
}

func (s *supplyFlags) register(f *flag.FlagSet) {
	f.StringVar(&s.podUser, "pod-user", string(runnerpod.PodUserDeckhand), "who chooses the user and the groups of runner pods: Deckhand, or Cluster if its admission assigns them, as OpenShift does")
	f.StringVar(&s.supply.ImageMirror, "image-mirror", "", "what replaces the registry of every image of runner pods, as mirror.example.com/hub; empty: nothing")
	f.StringVar(&s.resources.requests, "container-requests", "", "requests of every container of runner pods, in place of the standard ones, as cpu=50m,ephemeral-storage=100Mi")
	f.StringVar(&s.resources.limits, "container-limits", "", "limits of every container of runner pods, in place of the standard ones, as cpu=2,ephemeral-storage=2Gi")
	f.StringVar(&s.pullSecrets, "runner-image-pull-secrets", "", "Secrets of a Run's namespace to pull those images with, separated by commas")
	f.StringVar(&s.caBundle, "runner-ca-bundle", "", "ConfigMap of a Run's namespace, as name/key, with certificates that runners trust beside the usual ones")
	f.StringVar(&s.proxy.HTTP, "runner-http-proxy", "", "HTTP proxy of runners for http")
	f.StringVar(&s.proxy.HTTPS, "runner-https-proxy", "", "HTTP proxy of runners for https; empty: that for http")
	f.StringVar(&s.proxy.NoProxy, "runner-no-proxy", "", "hosts, domains and networks that runners reach without it, separated by commas; the cluster's own are always")
	f.StringVar(&s.traces.Endpoint, "traces-endpoint", "", "base URL of a collector that accepts OTLP over HTTP, to which the operator and runners send spans; empty: none")
	f.BoolVar(&s.traces.Content, "traces-content", false, "spans have answers, arguments and results, without secrets")
	f.BoolVar(&s.traces.Metrics, "traces-metrics", false, "runners also send histograms of model calls to the collector: tokens and durations")
	f.BoolVar(&s.policies, "network-policies", false, "make NetworkPolicies for runner pods")
	f.StringVar(&s.letAPIServer, "network-policies-api-server", string(egress.PeersAddresses), "how those let the API server through: Addresses, or Ports where the network does not match nodes by their addresses")
	f.StringVar(&s.networkCheck, "network-check", "", "host and port at which runner pods find the operator to check that NetworkPolicies are enforced, such as deckhand-check.deckhand-system.svc:20471; the operator listens at that port and the next; empty: no Run shows that they are")
}

var errCABundle = errors.New("--runner-ca-bundle must be the name of a ConfigMap and a key of it: write ca-bundle/ca.crt")

// into sets the operator's options that the flags give, or returns which flag is invalid.
func (s *supplyFlags) into(o *operator.Options) error {
	o.Supply = s.supply
	if err := s.intoPods(&o.Supply); err != nil {
		return err
	}
	if s.pullSecrets != "" {
		o.Supply.ImagePullSecrets = strings.Split(s.pullSecrets, ",")
	}
	if s.caBundle != "" {
		name, key, found := strings.Cut(s.caBundle, "/")
		if !found || name == "" || key == "" {
			return errCABundle
		}
		o.Supply.CABundle = &v1alpha1.ConfigMapKeyRef{Name: v1alpha1.ObjectName(name), Key: key}
	}
	if s.traces.Endpoint != "" {
		o.Supply.Traces = &s.traces
	}
	if s.proxy.HTTP != "" || s.proxy.HTTPS != "" {
		o.Supply.Proxy = &s.proxy
	}
	o.NetworkPolicies, o.APIServer, o.NetworkCheck = s.policies, egress.Peers(s.letAPIServer), s.networkCheck
	if o.APIServer != egress.PeersAddresses && o.APIServer != egress.PeersPorts {
		return flagErrorf("--network-policies-api-server is %q: write Addresses or Ports", s.letAPIServer)
	}
	return nil
}

// intoPods puts the user and the resources of pods into the supply.
func (s *supplyFlags) intoPods(supply *operator.Supply) (err error) {
	supply.User = runnerpod.PodUser(s.podUser)
	if supply.User != runnerpod.PodUserDeckhand && supply.User != runnerpod.PodUserCluster {
		return flagErrorf("--pod-user is %q: write Deckhand or Cluster", s.podUser)
	}
	supply.Resources, err = s.containerResources()
	return err
}

// containerResources reads the resources of all containers.
func (s *supplyFlags) containerResources() (corev1.ResourceRequirements, error) {
	var out corev1.ResourceRequirements
	var err error
	if out.Requests, err = parseResources("--container-requests", s.resources.requests); err != nil {
		return out, err
	}
	if out.Limits, err = parseResources("--container-limits", s.resources.limits); err != nil {
		return out, err
	}
	for name, limit := range out.Limits {
		if request := out.Requests[name]; request.Cmp(limit) > 0 {
			return out, flagErrorf("--container-requests has %s=%s, which is more than the %s of --container-limits", name, &request, &limit)
		}
	}
	return out, nil
}

// parseResources reads NAME=QUANTITY with commas between them.
func parseResources(option, text string) (corev1.ResourceList, error) {
	if text == "" {
		return nil, nil
	}
	out := corev1.ResourceList{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		quantity, err := resource.ParseQuantity(value)
		if err != nil || name == "" || quantity.Sign() <= 0 {
			return nil, flagErrorf("%s has %q: write a resource and a quantity above 0, for example cpu=500m", option, part)
		}
		out[corev1.ResourceName(name)] = quantity
	}
	return out, nil
}
