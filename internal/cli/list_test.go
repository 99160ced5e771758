package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/gen"
)

func TestListPrintsRuns(t *testing.T) {
	working := namedRun("fix", "AwaitingApproval", func(r *v1alpha1.Run) {
		r.Labels = map[string]string{"app": "fix"}
		r.Status.Conditions[0].Message = "It asks: \x1b[2J\u202edeploy?\nTwo lines"
		r.Status.Attempt = &v1alpha1.Attempt{Number: 2, Pod: "fix-2"}
		r.Status.Progress = &v1alpha1.RunProgress{
			Model: "gpt", Counts: v1alpha1.Counts{Steps: 4},
			Usage: v1alpha1.Usage{TotalTokens: 7_375_000, Cost: "0.023625USD", Duration: "2m50s"},
		}
	})
	elsewhere := namedRun("pipeline", "Finished", func(r *v1alpha1.Run) {
		r.Namespace = "team-b"
		r.Spec.Agent, r.Spec.Workflow = "", "release"
		r.Status.Target = &v1alpha1.RunTarget{Kind: v1alpha1.TargetWorkflow, Name: "release"}
	})
	for name, args := range map[string][]string{
		"list":                {"list"},
		"list-wide":           {"list", "-o", "wide"},
		"list-all-namespaces": {"list", "-A"},
		"list-name":           {"list", "-A", "-o", "name"},
		"list-json":           {"list", "-l", "app=fix", "-o", "json"},
		"list-none":           {"list", "-l", "app=other"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, working.DeepCopy(), elsewhere.DeepCopy())
			if code := s.run(t, args...); code != exitOK {
				t.Errorf("exit code %d", code)
			}
			if name != "list-json" && strings.ContainsAny(s.text(), "\x1b\u202e") {
				t.Error("control characters reach the terminal")
			}
			golden(t, name+".txt", s.text())
		})
	}
}

func TestListShowsTheNewestRunsFirst(t *testing.T) {
	var objects []client.Object
	for name, age := range map[string]time.Duration{"b-oldest": 3 * time.Minute, "c-newest": time.Minute, "a-between": 2 * time.Minute} {
		objects = append(objects, namedRun(name, "Finished", func(r *v1alpha1.Run) {
			r.CreationTimestamp = metav1.NewTime(gen.Noon.Add(-age))
		}))
	}
	s := newSession(t, objects...)
	if code := s.run(t, "list", "--limit=2", "-o", "name"); code != exitOK || s.out.String() != "run.deckhand.dev/c-newest\nrun.deckhand.dev/a-between\n" {
		t.Errorf("exit code %d: %s", code, s.text())
	}
	if want := "The newest 2 of 3 Runs: to list all, use --limit=0, or select some with -l\n"; s.err.String() != want {
		t.Errorf("said %q, want %q", s.err.String(), want)
	}
}

func TestPrintedAgesAreSinceCreation(t *testing.T) {
	s := newSession(t)
	if got := s.since(metav1.Time{}); got != "" {
		t.Errorf("the age of an object without a time is %q", got)
	}
	if got := s.since(metav1.NewTime(s.Now().Add(-90e9))); got != "90s" {
		t.Errorf("the age is %q", got)
	}
}

func TestListSaysWhatTheAPIServerSays(t *testing.T) {
	for name, tc := range map[string]struct {
		code         int
		status, want string
	}{
		"no right":  {403, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"runs.deckhand.dev is forbidden: User \"ann\" cannot list resource \"runs\" in API group \"deckhand.dev\" in the namespace \"team-a\""}`, "bind the ClusterRole deckhand-viewer to you"},
		"no Run":    {404, "404 page not found\n", "install the chart"},
		"no log-in": {401, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401,"message":"Unauthorized"}`, "Log in again"},
		"a fault":   {500, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500,"message":"etcd is gone"}`, "etcd is gone"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(tc.code)
			_, _ = io.WriteString(w, tc.status)
		}))
		s := newSession(t)
		s.readTable = nil
		if code := s.run(t, "list", "--server", server.URL); code != exitError || !strings.Contains(s.err.String(), tc.want) {
			t.Errorf("%s: exit code %d: %s", name, code, s.err.String())
		}
		server.Close()
	}
}
