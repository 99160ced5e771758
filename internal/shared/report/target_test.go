package report

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/task"
)

func TestInCluster(t *testing.T) {
	var token string
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token = r.Header.Get("Authorization")
		fmt.Fprint(w, "{}")
	}))
	defer api.Close()
	where, err := url.Parse(api.URL)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})
	for name, text := range map[string]string{"ca.crt": string(ca), "token": "bound\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", where.Hostname())
	t.Setenv("KUBERNETES_SERVICE_PORT", where.Port())
	t.Setenv(task.EnvPodUID, "pod-1")

	target, err := InCluster(task.Run{Namespace: "ns", Name: "r"}, dir)
	if err != nil {
		t.Fatal(err)
	}
	if ans, err := target.patch(t.Context(), step(1)); err != nil || ans.status != http.StatusOK {
		t.Fatalf("patch: %+v, %v", ans, err)
	}
	if token != "Bearer bound" || target.PodUID != "pod-1" {
		t.Errorf("token %q, pod %q", token, target.PodUID)
	}

	t.Setenv(task.EnvPodUID, "")
	if _, err := InCluster(task.Run{}, dir); err == nil || !strings.Contains(err.Error(), task.EnvPodUID) {
		t.Errorf("without a pod: %v", err)
	}
}
