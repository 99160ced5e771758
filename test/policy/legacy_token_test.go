package policy_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
)

// tokenSecret asks the control plane for a token that never expires.
func tokenSecret(namespace, name, account string, kind corev1.SecretType) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{corev1.ServiceAccountNameKey: account}},
		Type:       kind,
	}
}

// Whoever may create Secrets gets no token of the runner by one, neither at once nor
// by changing one that is there.
func TestNoSecretHoldsATokenOfTheRunner(t *testing.T) {
	s := newFixture(t)
	editor := s.As(t, "eve", s.namespace, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"*"}})
	const refused = "a Secret must not have a token of the ServiceAccount deckhand-runner: name another ServiceAccount in the annotation kubernetes.io/service-account.name"
	s.Create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "hers"}})
	cases := map[string]struct {
		secret *corev1.Secret
		want   string
	}{
		"of the runner":                {tokenSecret(s.namespace, "runner", v1alpha1.RunnerServiceAccount, corev1.SecretTypeServiceAccountToken), refused},
		"of another ServiceAccount":    {tokenSecret(s.namespace, "hers", "hers", corev1.SecretTypeServiceAccountToken), ""},
		"of no type, which gets none":  {tokenSecret(s.namespace, "opaque", v1alpha1.RunnerServiceAccount, corev1.SecretTypeOpaque), ""},
		"of a type without annotation": {&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "plain"}}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { says(t, editor.Create(t.Context(), tc.secret), tc.want) })
	}
	t.Run("by a change", func(t *testing.T) {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"kubernetes.io/service-account.name":"deckhand-runner"}}}`))
		err := editor.Patch(t.Context(), tokenSecret(s.namespace, "hers", "hers", corev1.SecretTypeServiceAccountToken), patch)
		if !apitest.IsPolicy(err) || !strings.Contains(err.Error(), refused) {
			t.Errorf("the server says %v", err)
		}
	})
}
