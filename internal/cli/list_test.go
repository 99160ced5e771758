package cli

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

func TestListPrintsRuns(t *testing.T) {
	working := namedRun("fix", "AwaitingApproval", func(r *v1alpha1.Run) {
		r.Labels = map[string]string{"app": "fix"}
		r.Status.Conditions[0].Message = "It asks: \x1b[2J\u202edeploy?\nTwo lines"
		r.Status.Attempt = &v1alpha1.Attempt{Number: 2, Pod: "fix-2"}
		startedFor(170*time.Second, -1)(r)
		r.Status.Progress = &v1alpha1.RunProgress{
			Model: "gpt", Counts: v1alpha1.Counts{Steps: 4},
			Usage: v1alpha1.Usage{TotalTokens: 7_375_000, Cost: "0.023625USD"},
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
			if code := s.run(t, args...); code != exit.OK {
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
	if code := s.run(t, "list", "--limit=2", "-o", "name"); code != exit.OK || s.out.String() != "run.deckhand.dev/c-newest\nrun.deckhand.dev/a-between\n" {
		t.Errorf("exit code %d: %s", code, s.text())
	}
	if want := "The newest 2 of 3 Runs: to list all, use --limit=0, or select some with -l\n"; s.err.String() != want {
		t.Errorf("said %q, want %q", s.err.String(), want)
	}
}

// startedFor is a Run whose first attempt started some time before now, and that ended as much later.
func startedFor(before, took time.Duration) func(*v1alpha1.Run) {
	return func(r *v1alpha1.Run) {
		started := metav1.NewTime(gen.Noon.Add(time.Hour - before))
		r.Status.StartTime = &started
		if took >= 0 {
			r.Status.CompletionTime = &metav1.Time{Time: started.Add(took)}
		}
	}
}

func TestListHasTheTimeSinceTheStartOfRunsThatWorkAndOfShortOnes(t *testing.T) {
	s := newSession(
		t, namedRun("waits", "Pending"), namedRun("works", "Running", startedFor(10*time.Second, -1)),
		namedRun("short", "Finished", startedFor(time.Minute, 300*time.Millisecond)), namedRun("long", "Finished", startedFor(time.Hour, 90*time.Second)),
	)
	if code := s.run(t, "list"); code != exit.OK {
		t.Fatal(s.text())
	}
	for name, want := range map[string]string{"waits": "", "works": "10s", "short": "0s", "long": "1m30s"} {
		at := strings.Index(strings.SplitN(s.out.String(), "\n", 2)[0], "ELAPSED")
		for line := range strings.Lines(s.out.String()) {
			if strings.HasPrefix(line, name) && strings.TrimSpace(line[at:at+len("ELAPSED")]) != want {
				t.Errorf("%s: want %q in %s", name, want, line)
			}
		}
	}
}

func TestListChoosesRuns(t *testing.T) {
	ship, objects := released()
	ship.Status.Target = &v1alpha1.RunTarget{Kind: v1alpha1.TargetWorkflow, Name: "release"}
	asks := namedRun("asks", v1alpha1.ReasonAwaitingApproval)
	failed := namedRun("failed", v1alpha1.ReasonStuck, func(r *v1alpha1.Run) { r.Status.Conditions[0].Status = metav1.ConditionFalse; r.Spec.Agent = "poet" })
	schedule := &v1alpha1.Schedule{ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: "nightly", UID: "uid-of-nightly"}}
	asks.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(schedule, v1alpha1.GroupVersion.WithKind("Schedule"))}
	failed.OwnerReferences = []metav1.OwnerReference{{APIVersion: "tekton.dev/v1alpha1", Kind: "Run", Name: "ship", UID: "u", Controller: new(true)}} // no child of ours
	objects = append(objects, asks, failed)
	for line, want := range map[string]string{
		"list":                                       "asks failed foreign ship",
		"list --children":                            "asks failed foreign ship ship-build ship-test-1 ship-test-1-helper",
		"list --state active":                        "asks",
		"list --state awaitingapproval,Stuck":        "asks failed",
		"list --state FAILED":                        "failed",
		"list --state succeeded":                     "foreign ship",
		"list --agent poet":                          "failed",
		"list --agent agent/poet":                    "failed",
		"list --agent workflow/release":              "ship",
		"list --agent helper --children":             "ship-test-1-helper",
		"list --state succeeded --agent fixer":       "foreign",
		"list -l deckhand.dev/parent-run --children": "ship-test-1-helper",
	} {
		for _, format := range []string{"name", "json"} {
			s := newSession(t, objects...)
			if code := s.run(t, append(strings.Fields(line), "-o", format)...); code != exit.OK {
				t.Fatal(s.text())
			}
			got := strings.Fields(strings.ReplaceAll(s.out.String(), "run.deckhand.dev/", ""))
			if format == "json" {
				var list v1alpha1.RunList
				if err := json.Unmarshal(s.out.Bytes(), &list); err != nil {
					t.Fatal(err)
				}
				got = nil
				for i := range list.Items {
					got = append(got, list.Items[i].Name)
				}
			}
			slices.Sort(got)
			if strings.Join(got, " ") != want {
				t.Errorf("%s -o %s: %s, want %s", line, format, got, want)
			}
		}
	}
}

func TestListSaysWhatItLeavesOut(t *testing.T) {
	_, objects := released()
	for line, want := range map[string]string{
		"list --agent helper":          "No Runs found but child Runs. To list these, add --children\n",
		"list --agent nobody":          "No Runs found in namespace team-a. To list those of all namespaces, add -A\nError: agent nobody not found in namespace team-a. List Agents with: kubectl get agents.deckhand.dev -A\n",
		"list --agent workflow/relase": "No Runs found in namespace team-a. To list those of all namespaces, add -A\nError: workflow relase not found in namespace team-a. Did you mean release?\n",
		"list --agent nobody -A":       "No Runs found\n",
		"list --state running-":        "Error: --state: a Run has no state running-. Write active, succeeded, failed, or a reason of docs/reference/reasons.md such as AwaitingApproval; did you mean running?\n",
		"list -w -o yaml":              "Error: -w prints lines, not yaml: leave out -o, or use kubectl get runs -w -o yaml\n",
	} {
		s := newSession(t, objects...)
		s.run(t, strings.Fields(line)...)
		if s.text() != want {
			t.Errorf("%s: printed %q, want %q", line, s.text(), want)
		}
	}
}

func TestListWatchPrintsRunsThatChange(t *testing.T) {
	for output, file := range map[string]string{"": "list-watch.txt", "name": "list-watch-name.txt"} {
		t.Run("-o "+output, func(t *testing.T) {
			s := newSession(t, namedRun("fix", "Running", startedFor(time.Minute, -1)), namedRun("quiet", "Running"))
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			looks, read := 0, s.readTable
			s.readTable = func(ctx context.Context, namespace string, options metav1.ListOptions) ([]byte, error) {
				switch looks++; looks {
				case 2:
					return nil, apierrors.NewServiceUnavailable("the API server is restarting")
				case 3:
					s.edit(t, "fix", endedWith(v1alpha1.ReasonFinished))
				case 4:
					if err := s.client.Create(ctx, namedRun("new", "Pending")); err != nil {
						return nil, err
					}
				case 5:
					interrupt()
				}
				return read(ctx, namespace, options)
			}
			if code := s.runUntil(ctx, t, "list", "--state=active", "-w", "-o", output); code != exit.OK || looks != 5 {
				t.Errorf("exit code %d after %d looks: %s", code, looks, s.text())
			}
			golden(t, file, s.text())
		})
	}
}

func TestPrintedAgesAreSinceCreation(t *testing.T) {
	s := newSession(t)
	if got := s.Since(metav1.Time{}); got != "" {
		t.Errorf("the age of an object without a time is %q", got)
	}
	if got := s.Since(metav1.NewTime(s.Now().Add(-90e9))); got != "90s" {
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
		if code := s.run(t, "list", "--server", server.URL); code != exit.Error || !strings.Contains(s.err.String(), tc.want) {
			t.Errorf("%s: exit code %d: %s", name, code, s.err.String())
		}
		server.Close()
	}
}
