package cli

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

func runsOf(t *testing.T, s *session) []v1alpha1.Run {
	t.Helper()
	var runs v1alpha1.RunList
	if err := s.client.List(t.Context(), &runs); err != nil {
		t.Fatal(err)
	}
	return runs.Items
}

func TestFlagsSetLabelsAndLimits(t *testing.T) {
	steps, tokens, cost := int32(9), v1alpha1.Tokens("2k"), v1alpha1.Money("1USD")
	old := namedRun("old", v1alpha1.ReasonFinished, func(r *v1alpha1.Run) { r.Spec.Limits = &v1alpha1.Limits{Steps: &steps, Tokens: &tokens} })
	for name, tc := range map[string]struct {
		args   []string
		labels map[string]string
		limits *v1alpha1.Limits
	}{
		"nothing":                      {[]string{"fixer"}, nil, nil},
		"labels":                       {[]string{"fixer", "--label", "team=a", "--label=why=a=b"}, map[string]string{"team": "a", "why": "a=b"}, nil},
		"a cost":                       {[]string{"fixer", "--cost=1USD"}, nil, &v1alpha1.Limits{Cost: &cost}},
		"limits beside those of a Run": {[]string{"--from=run/old", "--cost=1USD"}, nil, &v1alpha1.Limits{Steps: &steps, Tokens: &tokens, Cost: &cost}},
	} {
		s := newSession(t, old.DeepCopy())
		if code := s.run(t, append([]string{"run", "-p", "Go.", "--name=new"}, tc.args...)...); code != exit.OK {
			t.Fatal(s.text())
		}
		var run v1alpha1.Run
		if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: gen.Namespace, Name: "new"}, &run); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.labels, run.Labels) + cmp.Diff(tc.limits, run.Spec.Limits); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestADryRunCreatesNothing(t *testing.T) {
	for args, want := range map[string]string{
		"--dry-run":                 "run.deckhand.dev/fixer- created (dry run)\n",
		"--dry-run=client --name=a": "run.deckhand.dev/a created (dry run)\n",
		"--dry-run=server --name=a": "run.deckhand.dev/a created (server dry run)\n",
		"--dry-run=client -o name":  "run.deckhand.dev/fixer-\n",
	} {
		s := newSession(t)
		if code := s.run(t, append([]string{"run", "fixer", "Go."}, strings.Fields(args)...)...); code != exit.OK || s.text() != want || len(runsOf(t, s)) > 0 {
			t.Errorf("%s: exit code %d, %d Runs: %s", args, code, len(runsOf(t, s)), s.text())
		}
	}
	s := newSession(t)
	var run v1alpha1.Run
	if code := s.run(t, "run", "fixer", "Go.", "--dry-run", "-o", "yaml"); code != exit.OK || yaml.UnmarshalStrict(s.out.Bytes(), &run) != nil || run.Kind != "Run" || run.Spec.Prompt != "Go." || run.GenerateName != "fixer-" {
		t.Errorf("exit code %d: %s", code, s.text())
	}
}

func TestFlagsOfRunThatHaveNoEffectAreRefused(t *testing.T) {
	for args, want := range map[string]string{
		"--dry-run=maybe":          "write --dry-run=client or --dry-run=server",
		"--dry-run -w":             "leave out one of them",
		"--timeout=5m":             "add --wait",
		"--timeout=-5m -w":         "write how long",
		"--label=team":             "write KEY=VALUE",
		"--cost=1":                 "--cost 1: write an amount with its unit",
		"--steps=-1":               "write a number above 0",
		"--local -f x --label a=b": "leave out --local",

		"--steps=0":                     "--steps 0: write a number above 0",
		"--steps=0 --dry-run":           "--steps 0: write a number above 0",
		"--steps=0 --local -f x":        "--steps 0: write a number above 0",
		"--tokens=0":                    "--tokens 0: write a number above 0",
		"--tokens=":                     `--tokens "": write a number above 0`,
		"--cost=0USD":                   "--cost 0USD: write an amount above 0",
		"--cost=0.00USD --local -f x":   "--cost 0.00USD: write an amount above 0",
		"--color=purple":                `unknown value "purple" of --color`,
		"--wait --color=purple":         `unknown value "purple" of --color`,
		"--local -f x --color=purple":   `unknown value "purple" of --color`,
		"-w -o purple":                  "unknown output format",
		"--label a=b --label a=c":       "--label a is given twice",
		"--input text=a --input text=b": "--input text is given twice",
		"--input text=a --input text=a": "--input text is given twice",
		"--local -f x --input a=1 --input b=2 --input a=3": "--input a is given twice",
	} {
		s := newSession(t)
		if code := s.run(t, append([]string{"run", "fixer", "Go."}, strings.Fields(args)...)...); code != exit.Usage || !strings.Contains(s.err.String(), want) || len(runsOf(t, s)) > 0 {
			t.Errorf("%s: exit code %d, %d Runs: %s", args, code, len(runsOf(t, s)), s.text())
		}
	}
}

func TestWaitEndsAfterTheTimeoutAndLeavesTheRun(t *testing.T) {
	s := newSession(t)
	s.openLog = (&fakeLogs{}).open
	s.wait = func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	code := s.run(t, "run", "poet", "Work.", "--name=haiku", "-w", "--timeout=1ns")
	if code != exit.Timeout || !strings.Contains(s.err.String(), "1ns have passed (--timeout). The Run continues.") || !strings.Contains(s.err.String(), "kubectl deckhand logs -f haiku -n team-a") {
		t.Errorf("exit code %d: %s", code, s.text())
	}
	if runs := runsOf(t, s); len(runs) != 1 || runs[0].Spec.DesiredState == v1alpha1.DesiredStopped {
		t.Errorf("Runs are %+v", runs)
	}
}
