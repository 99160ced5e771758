package controller_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/deckhand-dev/deckhand/internal/operator"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
)

// With authentication, metrics are for those who may get /metrics of the API server.
func TestWhoMayReadTheMetrics(t *testing.T) {
	s := apitest.Get(t)
	namespace := s.Namespace(t)
	reader, other := account(t, s, namespace, "prometheus"), account(t, s, namespace, "other")
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "metrics-reader-"},
		Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
	}
	s.Create(t, role)
	s.Create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: reader.Name}},
	})
	address := serveMetrics(t, namespace)
	for name, tc := range map[string]struct {
		token string
		want  int
	}{
		"without a token":         {"", http.StatusUnauthorized},
		"with a token of nobody":  {"nonsense", http.StatusInternalServerError}, // the answer of controller-runtime
		"with a token, no right":  {s.Token(t, other, nil), http.StatusForbidden},
		"with the right to do so": {s.Token(t, reader, nil), http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := getMetrics(t.Context(), address, tc.token); err != nil || got != tc.want {
				t.Errorf("HTTP %d, %v; want %d", got, err, tc.want)
			}
		})
	}
}

func account(t *testing.T, s *apitest.Server, namespace, name string) *corev1.ServiceAccount {
	t.Helper()
	a := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	s.Create(t, a)
	return a
}

// serveMetrics runs an operator for an empty namespace until the test ends.
func serveMetrics(t *testing.T, namespace string) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	stop := start(t, newOperator(t, namespace, func(o *operator.Options) { o.MetricsAddress, o.MetricsAuthentication = address, true }))
	t.Cleanup(func() { _ = stop() })
	err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := getMetrics(ctx, address, "")
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("the metrics are not served: %v", err)
	}
	return address
}

func getMetrics(ctx context.Context, address, token string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	// The operator signs its own certificate.
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}
