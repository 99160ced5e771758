package docs_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// githubWorkflow is what the tests read of a workflow of GitHub.
type githubWorkflow struct {
	Permissions map[string]string
	Jobs        map[string]githubJob
}

// githubJob is a job of a workflow of GitHub.
type githubJob struct {
	TimeoutMinutes int `json:"timeout-minutes"`
	Steps          []githubStep
}

// githubStep is a step of a job; job names the file and the job.
type githubStep struct {
	job       string
	Uses, Run string
	With      map[string]any
}

var (
	// makeCommand is the only command that a step of a workflow runs: targets of the
	// Makefile, with root where a test needs it.
	makeCommand = regexp.MustCompile(`^(?:sudo --preserve-env env "PATH=\$PATH" "HOME=\$HOME" )?make((?: [a-z0-9-]+)+)(?: [A-Z]+="\$[A-Z]+")*$`)
	makeTarget  = regexp.MustCompile(`(?m)^([a-z0-9-]+)(?: [a-z0-9-]+)*:[^=]`)
	// pinned is an action at a commit, or that of attestations, whose commits this
	// repository cannot know for certain yet.
	pinned = regexp.MustCompile(`^[a-z-]+/[a-z-]+@[0-9a-f]{40}$|^actions/attest-build-provenance@v4$`)
)

// githubWorkflows returns the workflows of GitHub by the names of their files.
func githubWorkflows(t *testing.T) map[string]githubWorkflow {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, ".github/workflows/*.yml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("looking for workflows: %v", err)
	}
	workflows := map[string]githubWorkflow{}
	for _, file := range files {
		var w githubWorkflow
		if err := yaml.Unmarshal([]byte(read(t, file)), &w); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		workflows[filepath.Base(file)] = w
	}
	return workflows
}

// githubSteps returns the steps of all workflows of GitHub.
func githubSteps(t *testing.T) []githubStep {
	t.Helper()
	var steps []githubStep
	for file, w := range githubWorkflows(t) {
		for name, job := range w.Jobs {
			for _, step := range job.Steps {
				step.job = file + ", job " + name
				steps = append(steps, step)
			}
		}
	}
	return steps
}

// A developer can run whatever CI runs: steps are targets of the Makefile.
func TestWorkflowsOfGitHubRunOnlyTargetsOfTheMakefile(t *testing.T) {
	targets := map[string]bool{}
	for _, m := range makeTarget.FindAllStringSubmatch(read(t, filepath.Join(root, "Makefile")), -1) {
		targets[m[1]] = true
	}
	for _, step := range githubSteps(t) {
		m := makeCommand.FindStringSubmatch(step.Run)
		if m == nil && step.Run != "" {
			t.Errorf("%s runs more than make: %s", step.job, step.Run)
		}
		if m == nil {
			continue
		}
		for target := range strings.FieldsSeq(m[1]) {
			if !targets[target] {
				t.Errorf("%s: the Makefile has no target %s", step.job, target)
			}
		}
	}
}

// A workflow has no more rights than it needs, and ends by itself.
func TestWorkflowsOfGitHubAreBounded(t *testing.T) {
	for file, w := range githubWorkflows(t) {
		if diff := cmp.Diff(map[string]string{"contents": "read"}, w.Permissions); diff != "" {
			t.Errorf("%s: permissions -want +got:\n%s", file, diff)
		}
		for name, job := range w.Jobs {
			if job.TimeoutMinutes == 0 {
				t.Errorf("%s: job %s has no timeout-minutes", file, name)
			}
		}
	}
}

// Actions are pinned to a commit, and leave no token in the checkout.
func TestWorkflowsOfGitHubTrustOnlyWhatTheyPin(t *testing.T) {
	for _, step := range githubSteps(t) {
		if step.Uses != "" && !pinned.MatchString(step.Uses) {
			t.Errorf("%s uses %s, which is not pinned to a commit", step.job, step.Uses)
		}
		if strings.HasPrefix(step.Uses, "actions/checkout@") && step.With["persist-credentials"] != false {
			t.Errorf("%s leaves its token in the checkout; set persist-credentials: false", step.job)
		}
	}
}

// Dependabot knows each Go module of the Makefile.
func TestDependabotKnowsEveryModule(t *testing.T) {
	var config struct {
		Updates []struct {
			PackageEcosystem string `json:"package-ecosystem"`
			Directories      []string
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, filepath.Join(root, ".github/dependabot.yml"))), &config); err != nil {
		t.Fatal(err)
	}
	modules := regexp.MustCompile(`(?m)^MODULES = (.*)$`).FindStringSubmatch(read(t, filepath.Join(root, "Makefile")))
	if modules == nil {
		t.Fatal("the Makefile has no MODULES")
	}
	var want []string
	for module := range strings.FieldsSeq(modules[1]) {
		want = append(want, "/"+strings.TrimPrefix(module, "."))
	}
	for _, update := range config.Updates {
		if update.PackageEcosystem != "gomod" {
			continue
		}
		slices.Sort(want)
		got := slices.Sorted(slices.Values(update.Directories))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("modules of the Makefile -, of dependabot +:\n%s", diff)
		}
		return
	}
	t.Error("dependabot has no entry for gomod")
}

// A pull request is checked by all that CI checks, and CI leaves out no part of make verify and make test.
func TestWorkflowsOfGitHubRunWhatCIRuns(t *testing.T) {
	ran, verbs := targetsOfPullRequests(t), verbsOfCI(t)
	for _, whole := range []string{"verify", "test"} {
		parts := regexp.MustCompile(`(?m)^` + whole + `: (.*) ## `).FindStringSubmatch(read(t, filepath.Join(root, "Makefile")))
		if parts == nil {
			t.Fatalf("the Makefile has no parts of %s", whole)
		}
		for part := range strings.FieldsSeq(parts[1]) {
			if !verbs[part] {
				t.Errorf("CI leaves out %s, a part of make %s", part, whole)
			}
			ran[part] = ran[part] || ran[whole]
		}
	}
	for target := range verbs {
		if !ran[target] {
			t.Errorf("no workflow of pull requests runs make %s", target)
		}
	}
}

// targetsOfPullRequests returns what workflows of pull requests make.
func targetsOfPullRequests(t *testing.T) map[string]bool {
	t.Helper()
	ran := map[string]bool{}
	for _, step := range githubSteps(t) {
		file, _, _ := strings.Cut(step.job, ",")
		m := makeCommand.FindStringSubmatch(step.Run)
		if m == nil || !strings.Contains(read(t, filepath.Join(root, ".github/workflows", file)), "\n  pull_request:\n") {
			continue
		}
		for target := range strings.FieldsSeq(m[1]) {
			ran[target] = true
		}
	}
	return ran
}

// verbsOfCI returns what .ci/run makes.
func verbsOfCI(t *testing.T) map[string]bool {
	t.Helper()
	verbs := map[string]bool{}
	for _, line := range regexp.MustCompile(`(?m)^(?:verbs|beside) ([^#\n]+)`).FindAllStringSubmatch(read(t, filepath.Join(root, ".ci/run")), -1) {
		for target := range strings.FieldsSeq(line[1]) {
			verbs[target] = true
		}
	}
	return verbs
}
