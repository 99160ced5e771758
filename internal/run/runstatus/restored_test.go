package runstatus_test

import (
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

func TestRestoredRunsAreKnownByTheMarksOfBackupTools(t *testing.T) {
	cases := map[string]struct {
		labels, annotations map[string]string
		want                string // the mark; empty: the Run is new work
	}{
		"Velero and OADP":               {labels: map[string]string{"velero.io/backup-name": "nightly", "velero.io/restore-name": "nightly-2030"}, want: "velero.io/restore-name"},
		"Stork migration":               {annotations: map[string]string{"stork.libopenstorage.org/migrated": "true"}, want: "stork.libopenstorage.org/migrated"},
		"a copy by hand":                {annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"}},
		"Argo CD":                       {labels: map[string]string{"app.kubernetes.io/instance": "prod"}, annotations: map[string]string{"argocd.argoproj.io/tracking-id": "prod:deckhand.dev/Run:team-a/x"}},
		"Flux":                          {labels: map[string]string{"kustomize.toolkit.fluxcd.io/name": "prod"}},
		"an empty mark":                 {labels: map[string]string{"velero.io/restore-name": ""}},
		"the mark in the wrong place":   {annotations: map[string]string{"velero.io/restore-name": "x"}},
		"excluded from backup by label": {labels: map[string]string{"velero.io/exclude-from-backup": "true"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run := gen.Run(func(r *v1alpha1.Run) { r.Labels, r.Annotations = tc.labels, tc.annotations })
			o, is := runstatus.Restored(run)
			if is != (tc.want != "") {
				t.Fatalf("restored: %t", is)
			}
			if is && (o.Status != metav1.ConditionFalse || o.Reason != v1alpha1.ReasonRestored || !strings.Contains(o.Message, tc.want)) {
				t.Errorf("Restored() = %+v", o)
			}
		})
	}
}

// The admission policy lets a backup tool create children again, by the same marks.
func TestThePolicyKnowsTheSameMarks(t *testing.T) {
	policy, err := os.ReadFile(apitest.Manifest("policy", "child-runs.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, mark := range []string{"velero.io/restore-name", "stork.libopenstorage.org/migrated"} {
		if !runstatus.IsRestoreMark(mark) || strings.Count(string(policy), "[?'"+mark+"']") != 3 {
			t.Errorf("the policy does not know %s", mark)
		}
	}
}
