package cli

import (
	"context"
	"io"

	"github.com/spf13/pflag"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
)

// A Factory provides streams, the time, and a client with the kubeconfig and the flags of kubectl.
type Factory struct {
	terminal.Streams

	config    clientcmd.ClientConfig
	newClient func() (client.Client, error)
	readTable tableReader
	openLog   logOpener
	exec      podExecutor
	wait      func(context.Context) error
}

// NewFactory returns the Factory of a process.
func NewFactory(in io.Reader, out, errOut io.Writer) *Factory {
	return &Factory{Streams: terminal.NewStreams(in, out, errOut)}
}

// bindFlags adds the flags that kubectl has for clusters, users and namespaces.
func (f *Factory) bindFlags(flags *pflag.FlagSet) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	flags.StringVar(&rules.ExplicitPath, "kubeconfig", "", "Path of the kubeconfig file")
	overrides := &clientcmd.ConfigOverrides{}
	clientcmd.BindOverrideFlags(overrides, flags, clientcmd.RecommendedConfigOverrideFlags(""))
	f.config = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
}

// Client returns a client of the cluster. It finds resources without a request to the API
// server, because the kinds are known.
func (f *Factory) Client() (client.Client, error) {
	if f.newClient != nil {
		return f.newClient()
	}
	config, err := f.config.ClientConfig()
	if err != nil {
		return nil, configError(err)
	}
	config.QPS, config.Burst = 50, 100
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: scheme, Mapper: newMapper(scheme)})
}

// Namespace returns the namespace of the flag or of the kubeconfig.
func (f *Factory) Namespace() (string, error) {
	namespace, _, err := f.config.Namespace()
	return namespace, configError(err)
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme, authenticationv1.AddToScheme, authorizationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

func newMapper(scheme *runtime.Scheme) meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for kind := range scheme.KnownTypes(v1alpha1.GroupVersion) {
		mapper.Add(v1alpha1.GroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	for _, kind := range []string{"Pod", "Event", "PersistentVolumeClaim"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	mapper.Add(authenticationv1.SchemeGroupVersion.WithKind("SelfSubjectReview"), meta.RESTScopeRoot)
	mapper.Add(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"), meta.RESTScopeRoot)
	return mapper
}
