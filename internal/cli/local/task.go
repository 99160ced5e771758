package local

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/lint"
	"github.com/deckhand-dev/deckhand/internal/cli/runflags"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod/podtask"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A runnerInput is what the program runner-local reads from its standard input.
type runnerInput struct {
	Task     task.Task                    `json:"task"`
	Snapshot task.Snapshot                `json:"snapshot"`
	Secrets  map[string]map[string]string `json:"secrets,omitempty"`

	// notes describe differences from a cluster.
	notes []string
}

// commandLine is the name under which findings about the Run appear.
const commandLine = "the command line"

// input returns the task of a Run of the manifests, as the operator would make it.
func (r Run) input(ctx context.Context, dir string) (*runnerInput, error) {
	files, err := lint.Reader{Streams: r.Streams}.ReadManifests(ctx, r.Description.Files)
	if err != nil {
		return nil, err
	}
	_, objects, err := lint.Load(ctx, files, r.Now())
	if err != nil {
		return nil, err
	}
	run, err := chooseLocal(objects, r.Description.Target)
	if err != nil {
		return nil, err
	}
	declared := runflags.DeclarationOf(objects.Agents[run.Spec.Agent])
	if err := r.Description.Overwrite(ctx, r.Streams, run, declared); err != nil {
		return nil, err
	}
	if err := declared.Given(run); err != nil {
		return nil, err
	}
	if run, objects, err = r.check(ctx, files, run); err != nil {
		return nil, err
	}
	if err := r.setEndpoints(ctx, objects.Models); err != nil {
		return nil, err
	}
	agent := objects.Agents[run.Spec.Agent]
	agent.Namespace = run.Namespace
	revision, err := snapshot.Of(agent, snapshot.Objects{Agents: objects.Agents, Models: objects.Models, Toolsets: objects.Toolsets})
	if err != nil {
		return nil, fmt.Errorf("the Agent %s cannot run: %w", agent.Name, err)
	}
	if err := refuseLocally(revision); err != nil {
		return nil, err
	}
	limits := v1alpha1.Limits{}
	if run.Spec.Limits != nil {
		limits = *run.Spec.Limits
	}
	out := &runnerInput{Snapshot: revision.Snapshot, Task: podtask.Of(podtask.Input{
		Run: run, RunnerHash: revision.RunnerHash, Attempt: 1, Durable: true, Limits: snapshot.Lower(revision.Snapshot.Agent.Limits, limits),
	})}
	out.Task.Limits.Ask = false // no Decision of type Grant is made here
	out.adapt(agent, dir)
	out.noteModels(objects.Models)
	out.Secrets, err = r.secrets(out.Snapshot, objects)
	return out, err
}

// setEndpoints sets the endpoints that the command line gives Models. The API server would accept each
// of them.
func (r Run) setEndpoints(ctx context.Context, models map[string]*v1alpha1.Model) error {
	pairs, err := runflags.PairsOf("--endpoint", "NAME=URL", r.Flags.endpoints)
	if err != nil {
		return err
	}
	for _, p := range pairs {
		model := models[p.Key]
		if model == nil {
			return exit.Usagef("--endpoint %s: the files have no such Model, but: %s", p.Key, strings.Join(slices.Sorted(maps.Keys(models)), ", "))
		}
		if p.Value == "" {
			return exit.Usagef("--endpoint %s=: write the URL behind the name, for example http://127.0.0.1:8080/v1", p.Key)
		}
		model.Spec.Endpoint = p.Value
		if err := r.checkEndpoint(ctx, model); err != nil {
			return err
		}
	}
	return nil
}

// checkEndpoint returns an error if the API server would refuse a Model with the endpoint that it was given.
func (r Run) checkEndpoint(ctx context.Context, model *v1alpha1.Model) error {
	data, err := yaml.Marshal(model)
	if err != nil {
		return err
	}
	report, err := lint.Files(ctx, []lint.File{{Name: commandLine, Data: data}}, r.Now())
	if err != nil {
		return err
	}
	for _, f := range report.Findings {
		if f.RefusedBy == lint.APIServer {
			return exit.Usagef("--endpoint %s=%s: %s", model.Name, model.Spec.Endpoint, f.Message)
		}
	}
	return nil
}

// chooseLocal returns the Run that a command line means: one of an Agent, or the only one of
// the files.
func chooseLocal(objects *lint.Objects, target string) (*v1alpha1.Run, error) {
	agents := slices.Sorted(maps.Keys(objects.Agents))
	switch {
	case target != "":
		run, err := runflags.RunOfTarget(target)
		if err == nil && run.Spec.Agent != "" && objects.Agents[run.Spec.Agent] == nil {
			err = exit.Usagef("the Agent %s is not in the files, which have: %s", run.Spec.Agent, strings.Join(agents, ", "))
		}
		if err == nil {
			err = refuseWorkflow(run)
		}
		return run, err
	case len(objects.Runs) == 1:
		run := objects.Runs[0].DeepCopy()
		return run, refuseWorkflow(run)
	case len(objects.Runs) > 1:
		return nil, exit.Usagef("the files have %d Runs: name an Agent and give -p or --input, or leave out all Runs but one", len(objects.Runs))
	case len(agents) == 1:
		return runflags.RunOfTarget(agents[0])
	case len(agents) == 0:
		return nil, exit.Usagef("the files have no Agent: add the file that has it with -f")
	}
	return nil, exit.Usagef("the files have several Agents: name one of %s", strings.Join(agents, ", "))
}

func refuseWorkflow(run *v1alpha1.Run) error {
	if run.Spec.Workflow == "" {
		return nil
	}
	return exit.Usagef("without a cluster Agents run, and no Workflows: run the Workflow %s in a cluster, or name one of its Agents", run.Spec.Workflow)
}

// check checks the manifests together with the Run, and returns it with defaults.
func (r Run) check(ctx context.Context, files []lint.File, run *v1alpha1.Run) (*v1alpha1.Run, *lint.Objects, error) {
	named := &v1alpha1.Run{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Run"},
		ObjectMeta: metav1.ObjectMeta{Name: run.Name, Labels: run.Labels}, Spec: run.Spec,
	}
	if r.Description.Name == "" {
		named.Name = runflags.GeneratedName(run) + rand.String(5)
	}
	data, err := yaml.Marshal(named)
	if err != nil {
		return nil, nil, err
	}
	report, objects, err := lint.Load(ctx, append(slices.Clone(files), lint.File{Name: commandLine, Data: data}), r.Now())
	if err != nil {
		return nil, nil, err
	}
	used := &lint.Report{Objects: report.Objects}
	for _, f := range report.Findings {
		isOther := slices.Contains([]string{"Run", "Workflow", "Schedule"}, f.Kind) && f.File != commandLine
		if f.Severity == lint.Error && !isOther {
			used.Findings = append(used.Findings, f)
		}
	}
	if err := lint.ErrorOf(used); err != nil {
		toUser := *r.Streams
		toUser.Out = r.Err
		lint.Reader{Streams: &toUser}.PrintReport(used)
		return nil, nil, err
	}
	last := objects.Runs[len(objects.Runs)-1]
	last.Namespace, last.UID = "local", uuid.NewUUID() // servers recognize repeated requests by it
	if objects.Agents[last.Spec.Agent] == nil {
		return nil, nil, exit.Usagef("the Agent %s is not in the files: add the file that has it with -f", last.Spec.Agent)
	}
	return last, objects, nil
}

// refuseLocally returns an error if something of an Agent needs a cluster.
func refuseLocally(v *snapshot.Revision) error {
	if t := v.Agent.PodTemplate; t != nil && t.RunnerImage != "" {
		return fmt.Errorf("the Agent %s needs the runner of the image %s, and this machine has the standard runner: run it in a cluster", v.Agent.Name, t.RunnerImage)
	}
	for _, a := range append([]task.Agent{v.Snapshot.Agent}, v.Snapshot.Agents...) {
		for _, t := range a.Tools {
			if t.Mode == task.ModeRun {
				return fmt.Errorf("the Agent %s gives work to the Agent %s in a child Run, which needs a cluster: set delegation.mode: Pod of the tool, or run it in a cluster", a.Name, t.Agent)
			}
		}
	}
	for _, t := range v.Snapshot.Toolsets {
		if t.Stdio != nil {
			return fmt.Errorf("the Toolset %s starts its server in a container, which needs a cluster: use a server with spec.http, or leave the tool out", t.Name)
		}
	}
	return nil
}

// adapt adapts an Agent to this machine.
func (r *runnerInput) adapt(agent *v1alpha1.Agent, dir string) {
	if r.Snapshot.Workspace.Git != nil || len(r.Snapshot.Workspace.Files) > 0 {
		r.Snapshot.Workspace = task.Source{}
		r.notes = append(r.notes, "spec.workspace of the Agent is not used: the workspace is "+dir+", and nothing is published.")
	}
	r.dropSkills()
	if r.Snapshot.Sandbox == nil {
		return
	}
	if s := agent.Spec.Sandbox; s != nil && s.Image != "" {
		r.notes = append(r.notes, "spec.sandbox.image "+s.Image+" is not used: commands use the programs of this machine.")
	}
	told := "\n\nCommands run on the machine of the user. File tools call the workspace " + task.Workspace + "; for commands it is " + dir + ", where they start. Use relative paths in commands."
	r.Snapshot.Agent.Instructions += told
	for i := range r.Snapshot.Agents {
		r.Snapshot.Agents[i].Instructions += told
	}
}

// dropSkills removes the skills, which a pod fetches.
func (r *runnerInput) dropSkills() {
	if len(r.Snapshot.Skills()) == 0 {
		return
	}
	r.Snapshot.Agent.Skills = nil
	for i := range r.Snapshot.Agents {
		r.Snapshot.Agents[i].Skills = nil
	}
	r.notes = append(r.notes, "spec.skills of the Agent are not used: they are only in a cluster.")
}

// noteModels notes which Models have names that their endpoints likely do not know.
func (r *runnerInput) noteModels(models map[string]*v1alpha1.Model) {
	for _, m := range r.Snapshot.Models {
		if model := models[m.Name]; model != nil {
			for _, warning := range snapshot.ModelIDWarnings(model.Spec) {
				r.notes = append(r.notes, "Model "+m.Name+": "+warning)
			}
		}
	}
}

// A secretSource finds the values of keys: in --secret, then in the Secrets of the files, then in --model-key.
type secretSource struct {
	given    map[string]string // of --secret, by NAME/KEY
	objects  *lint.Objects
	ofModel  map[task.SecretKey]bool
	variable string // of --model-key; empty: there is none
}

// secrets returns the keys that a snapshot needs.
func (r Run) secrets(s task.Snapshot, objects *lint.Objects) (map[string]map[string]string, error) {
	given, err := r.givenSecrets()
	if err != nil {
		return nil, err
	}
	from := secretSource{given: given, objects: objects, ofModel: map[task.SecretKey]bool{}, variable: r.Flags.modelKey}
	for _, m := range s.Models {
		from.ofModel[m.SecretKey] = true
	}
	out := map[string]map[string]string{}
	var missing []task.SecretKey
	for _, secret := range snapshot.Secrets(s) {
		out[secret.Name] = map[string]string{}
		for _, key := range secret.Keys {
			k := task.SecretKey{Secret: secret.Name, Key: key}
			value, found, err := from.find(k)
			if err != nil {
				return nil, err
			}
			if !found {
				missing = append(missing, k)
			}
			out[secret.Name][key] = strings.TrimSpace(value)
		}
	}
	if len(missing) > 0 {
		return nil, from.missing(missing)
	}
	return out, nil
}

// missing is the error about keys that have no value. It says where each was looked for.
func (s secretSource) missing(keys []task.SecretKey) error {
	told := make([]string, 0, len(keys))
	isOfModel := false
	for _, k := range keys {
		isOfModel = isOfModel || s.ofModel[k]
		told = append(told, k.Secret+"/"+k.Key+s.why(k))
	}
	where := fmt.Sprintf("Add it to a Secret in the files, or name the environment variable that has it with --secret %s/%s=VARIABLE", keys[0].Secret, keys[0].Key)
	if isOfModel {
		where += "; for the key of a Model also with --model-key VARIABLE"
	}
	return exit.Usagef("a key of a Secret is needed and has no value: %s. %s", strings.Join(told, "; "), where)
}

// why says why a key has no value.
func (s secretSource) why(k task.SecretKey) string {
	secret := s.objects.Secrets[k.Secret]
	if secret == nil {
		return " is not in the files"
	}
	at := s.objects.SecretsAt[k.Secret]
	if _, has := secret.Data[k.Key]; has {
		return " is empty in " + at
	}
	return fmt.Sprintf(" is not in the Secret of %s, which has %s", at, cmp.Or(strings.Join(slices.Sorted(maps.Keys(secret.Data)), ", "), "no key"))
}

// find returns the value of a key; false: there is none.
func (s secretSource) find(k task.SecretKey) (string, bool, error) {
	if value, found := s.given[k.Secret+"/"+k.Key]; found {
		return value, true, nil
	}
	if secret := s.objects.Secrets[k.Secret]; secret != nil && len(bytes.TrimSpace(secret.Data[k.Key])) > 0 {
		return string(secret.Data[k.Key]), true, nil
	}
	if s.variable == "" || !s.ofModel[k] {
		return "", false, nil
	}
	value, err := environmentValue("--model-key", s.variable)
	return value, err == nil, err
}

// givenSecrets returns the values of --secret by NAME/KEY.
func (r Run) givenSecrets() (map[string]string, error) {
	out := map[string]string{}
	for _, text := range r.Flags.secrets {
		at, variable, found := strings.Cut(text, "=")
		if name, key, slash := strings.Cut(at, "/"); !found || !slash || name == "" || key == "" || variable == "" {
			return nil, exit.Usagef("--secret %q: write NAME/KEY=VARIABLE, with the name of an environment variable", at)
		}
		if _, twice := out[at]; twice {
			return nil, exit.Usagef("--secret %s is given twice: leave out one of them", at)
		}
		value, err := environmentValue("--secret", variable)
		if err != nil {
			return nil, err
		}
		out[at] = value
	}
	return out, nil
}

func environmentValue(flag, variable string) (string, error) {
	value := os.Getenv(variable)
	if value == "" {
		return "", exit.Usagef("the environment variable of %s is not set or empty: write the name of a variable, not its value, and export it", flag)
	}
	return value, nil
}

var errNotOnLinux = errors.New("without a cluster Agents run on Linux, because the kernel must confine what the agent does. On this system, use a virtual machine or a cluster")
