package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/runflags"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// manifests are manifests, by a name for each.
var manifests = map[string]string{
	"model":     "apiVersion: deckhand.dev/v1alpha1\nkind: Model\nmetadata: {name: m}\nspec: {provider: OpenAI, modelID: a-model, apiKeySecretRef: {name: keys, key: api-key}}\n",
	"agent":     "apiVersion: deckhand.dev/v1alpha1\nkind: Agent\nmetadata: {name: worker, namespace: team-a}\nspec: {instructions: Work., model: m, tools: [{builtin: Files}, {builtin: Shell}], sandbox: {image: 'debian:13'}, limits: {steps: 20, tokens: 1000}}\n",
	"other":     "apiVersion: deckhand.dev/v1alpha1\nkind: Agent\nmetadata: {name: other}\nspec: {instructions: Work., model: m}\n",
	"typed":     "apiVersion: deckhand.dev/v1alpha1\nkind: Agent\nmetadata: {name: typed}\nspec: {instructions: Work., model: m, input: {schema: {type: object, required: [count], properties: {count: {type: integer}}}}}\n",
	"delegates": "apiVersion: deckhand.dev/v1alpha1\nkind: Agent\nmetadata: {name: boss}\nspec: {description: Leads., instructions: Work., model: m, tools: [{agent: other, delegation: {mode: Run}}]}\n",
	"custom":    "apiVersion: deckhand.dev/v1alpha1\nkind: Agent\nmetadata: {name: own}\nspec: {instructions: Work., model: m, podTemplate: {runnerImage: 'mine:1'}}\n",
	"broken":    "apiVersion: deckhand.dev/v1alpha1\nkind: Agent\nmetadata: {name: broken}\nspec: {instruction: Work., model: m}\n",
	"server":    "apiVersion: deckhand.dev/v1alpha1\nkind: Toolset\nmetadata: {name: hub}\nspec: {stdio: {container: {image: 'hub:1'}, command: [hub]}}\n---\napiVersion: deckhand.dev/v1alpha1\nkind: Agent\nmetadata: {name: user}\nspec: {instructions: Work., model: m, tools: [{toolset: hub}]}\n",
	"run":       "apiVersion: deckhand.dev/v1alpha1\nkind: Run\nmetadata: {name: tidy, labels: {team: a}}\nspec: {agent: worker, prompt: Tidy up., limits: {steps: 5}}\n",
	"workflow":  "apiVersion: deckhand.dev/v1alpha1\nkind: Run\nmetadata: {name: all}\nspec: {workflow: release}\n",
	"secret":    "apiVersion: v1\nkind: Secret\nmetadata: {name: keys}\nstringData: {api-key: from-the-file}\n",
}

// given is what a command line has.
type given struct {
	runflags.Description

	flags Flags
}

// inputOf returns the task of files and options.
func inputOf(t *testing.T, files string, o given) (*runnerInput, string, error) {
	t.Helper()
	dir := t.TempDir()
	for name := range strings.FieldsSeq(files) {
		file := filepath.Join(dir, name+".yaml")
		if err := os.WriteFile(file, []byte(manifests[name]), 0o600); err != nil {
			t.Fatal(err)
		}
		o.Files = append(o.Files, file)
	}
	s := newSession(t)
	o.Name = "try"
	got, err := Run{Streams: &s.Streams, Description: o.Description, Flags: o.flags}.input(t.Context(), "/home/ann/app")
	return got, s.err.String(), err
}

func TestLocalTask(t *testing.T) {
	t.Setenv("TEST_MODEL_KEY", "from-the-environment")
	got, _, err := inputOf(t, "model agent run", given{flags: Flags{modelKey: "TEST_MODEL_KEY"}})
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := inputOf(t, "model agent run", given{flags: Flags{modelKey: "TEST_MODEL_KEY"}})
	if err != nil || other.Task.Run.UID == got.Task.Run.UID || got.Task.Run.UID == "" {
		t.Errorf("two Runs have the UIDs %q and %q, by which servers recognize repeated requests; %v", got.Task.Run.UID, other.Task.Run.UID, err)
	}
	got.Task.Run.UID = "a-uid"
	data, err := json.MarshalIndent(got, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	const file = "testdata/task.json"
	if *update {
		if err := os.WriteFile(file, append(data, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.TrimSpace(string(want)), string(data)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestLocalSecrets(t *testing.T) {
	t.Setenv("TEST_MODEL_KEY", "of-the-model")
	t.Setenv("TEST_SECRET", "of-the-secret")
	t.Setenv("OPENAI_API_KEY", "nobody-named-it")
	for name, tc := range map[string]struct {
		files string
		flags Flags
		want  string
	}{
		"--secret wins":                 {"model agent secret", Flags{secrets: []string{"keys/api-key=TEST_SECRET"}, modelKey: "TEST_MODEL_KEY"}, "of-the-secret"},
		"then a Secret in the files":    {"model agent secret", Flags{modelKey: "TEST_MODEL_KEY"}, "from-the-file"},
		"then the variable for Models":  {"model agent", Flags{modelKey: "TEST_MODEL_KEY"}, "of-the-model"},
		"and nothing that is not named": {"model agent", Flags{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := inputOf(t, tc.files, given{Description: runflags.Description{Prompt: "Work."}, flags: tc.flags})
			if tc.want == "" {
				if err == nil || !strings.Contains(err.Error(), "keys/api-key") {
					t.Errorf("the error is %v", err)
				}
				return
			}
			if err != nil || got.Secrets["keys"]["api-key"] != tc.want {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

func TestAModelOfAnotherProviderIsNoted(t *testing.T) {
	t.Chdir(t.TempDir())
	text := strings.Replace(manifests["model"], "a-model", "claude-sonnet-5", 1) + "---\n" + manifests["other"] + "---\n" + manifests["secret"]
	if err := os.WriteFile("a.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for endpoint, want := range map[string]string{"": "Model m: spec.modelID: claude-sonnet-5 is a model of Anthropic", "m=http://127.0.0.1:8080/v1": ""} {
		s, flags := newSession(t), Flags{}
		if endpoint != "" {
			flags.endpoints = []string{endpoint}
		}
		got, err := Run{Streams: &s.Streams, Flags: flags, Description: runflags.Description{Files: []string{"a.yaml"}, Prompt: "Work."}}.input(t.Context(), "/home/ann/app")
		if err != nil || (want == "") != (len(got.notes) == 0) || !strings.HasPrefix(strings.Join(got.notes, ""), want) {
			t.Errorf("%s: the notes are %v, want %q; %v", endpoint, got, want, err)
		}
	}
}

func TestAMissingKeyIsNamedWithItsFile(t *testing.T) {
	for name, tc := range map[string]struct{ stringData, want string }{
		"no Secret":   {"", "keys/api-key is not in the files. Add it"},
		"another key": {"{apikey: x, b: z}", "keys/api-key is not in the Secret of secret.yaml:1, which has apikey, b. Add it"},
		"no keys":     {"{}", "keys/api-key is not in the Secret of secret.yaml:1, which has no key. Add it"},
		"empty":       {"{api-key: ' '}", "keys/api-key is empty in secret.yaml:1. Add it to a Secret in the files, or name the environment variable that has it with --secret keys/api-key=VARIABLE; for the key of a Model also with --model-key VARIABLE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			text := manifests["model"] + "---\n" + manifests["other"]
			files := []string{"a.yaml"}
			if tc.stringData != "" {
				files = append(files, "secret.yaml")
			}
			secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: keys}\nstringData: " + tc.stringData + "\n"
			if err := errors.Join(os.WriteFile("a.yaml", []byte(text), 0o600), os.WriteFile("secret.yaml", []byte(secret), 0o600)); err != nil {
				t.Fatal(err)
			}
			s := newSession(t)
			_, err := Run{Streams: &s.Streams, Description: runflags.Description{Files: files, Prompt: "Work."}}.input(t.Context(), "/home/ann/app")
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, and lacks %q", err, tc.want)
			}
		})
	}
}

func TestAnEndpointOfTheCommandLineReplacesThatOfItsModel(t *testing.T) {
	t.Setenv("TEST_MODEL_KEY", "k")
	const url = "http://127.0.0.1:4711/v1"
	o := given{Description: runflags.Description{Prompt: "x"}, flags: Flags{modelKey: "TEST_MODEL_KEY", endpoints: []string{"m=" + url}}}
	got, _, err := inputOf(t, "model agent", o)
	if err != nil || got.Snapshot.Models[0].Endpoint != url {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestLocalRefusals(t *testing.T) {
	t.Setenv("TEST_MODEL_KEY", "k")
	key := Flags{modelKey: "TEST_MODEL_KEY"}
	for name, tc := range map[string]struct {
		files string
		o     given
		want  string // part of the error or of what is printed
	}{
		"no Agent":                     {"model", given{}, "the files have no Agent: add the file"},
		"several Agents":               {"model agent other", given{}, "name one of other, worker"},
		"an Agent that is not there":   {"model agent", given{Description: runflags.Description{Target: "reviewer"}}, "the Agent reviewer is not in the files, which have: worker"},
		"a Workflow":                   {"model agent workflow", given{}, "run the Workflow release in a cluster"},
		"a named Workflow":             {"model agent", given{Description: runflags.Description{Target: "workflow/release"}}, "run the Workflow release in a cluster"},
		"several Runs":                 {"model agent run workflow", given{}, "the files have 2 Runs"},
		"a Run without its Agent":      {"model other run", given{}, "the Agent worker is not in the files"},
		"no Model":                     {"agent", given{Description: runflags.Description{Prompt: "x"}}, `Model "m" not found`},
		"no prompt":                    {"model agent", given{flags: key}, "Agent worker needs a prompt: add -p TEXT"},
		"no input":                     {"model typed", given{flags: key}, "Agent typed needs a prompt or an input: add -p TEXT, or --input NAME=VALUE"},
		"an input that does not fit":   {"model typed", given{Description: runflags.Description{Input: []string{"count=1.5"}}, flags: key}, "spec.input: does not fit the input of Agent typed: `count` must be an integer"},
		"an input that is a text":      {"model typed", given{Description: runflags.Description{Input: []string{"count=x"}}, flags: key}, "--input count=x: write a whole number, for example --input count=3"},
		"a child Run":                  {"model other delegates", given{Description: runflags.Description{Target: "boss", Prompt: "x"}, flags: key}, "the Agent boss gives work to the Agent other in a child Run, which needs a cluster"},
		"an MCP server in a container": {"model server", given{Description: runflags.Description{Prompt: "x"}, flags: key}, "the Toolset hub starts its server in a container"},
		"a custom runner":              {"model custom", given{Description: runflags.Description{Prompt: "x"}, flags: key}, "needs the runner of the image mine:1"},
		"an unknown field":             {"model broken", given{Description: runflags.Description{Prompt: "x"}, flags: key}, "spec.instruction: unknown field: write instructions"},
		"a value in place of a name":   {"model agent", given{Description: runflags.Description{Prompt: "x"}, flags: Flags{modelKey: "sk-0123"}}, "the environment variable of --model-key is not set or empty"},
		"an endpoint of no Model":      {"model agent", given{Description: runflags.Description{Prompt: "x"}, flags: Flags{modelKey: "TEST_MODEL_KEY", endpoints: []string{"n=http://127.0.0.1:1/v1"}}}, "--endpoint n: the files have no such Model, but: m"},
		"an endpoint without a name":   {"model agent", given{Description: runflags.Description{Prompt: "x"}, flags: Flags{modelKey: "TEST_MODEL_KEY", endpoints: []string{"http://127.0.0.1:1/v1"}}}, "write NAME=URL"},
		"an endpoint that is no URL":   {"model agent", given{Description: runflags.Description{Prompt: "x"}, flags: Flags{modelKey: "TEST_MODEL_KEY", endpoints: []string{"m=localhost:1"}}}, "--endpoint m=localhost:1: "},
		"an endpoint that is empty":    {"model agent", given{Description: runflags.Description{Prompt: "x"}, flags: Flags{modelKey: "TEST_MODEL_KEY", endpoints: []string{"m="}}}, "--endpoint m=: "},
		"a secret without a key":       {"model agent", given{Description: runflags.Description{Prompt: "x"}, flags: Flags{secrets: []string{"keys=V"}}}, "write NAME/KEY=VARIABLE"},
	} {
		t.Run(name, func(t *testing.T) {
			_, printed, err := inputOf(t, tc.files, tc.o)
			if err == nil || !strings.Contains(printed+err.Error(), tc.want) {
				t.Errorf("%v\n%s", err, printed)
			}
			if err != nil && strings.Contains(err.Error(), "sk-0123") {
				t.Error("the value is printed")
			}
		})
	}
}

func TestLocalFlags(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no files":            {nil, "name the files with the manifests"},
		"the home directory":  {[]string{"-f", "x", "-C", os.Getenv("HOME")}, "has your home directory in it"},
		"what has it":         {[]string{"-f", "x", "-C", "/"}, "has your home directory in it"},
		"a missing directory": {[]string{"-f", "x", "-C", "there-is-none"}, "-C there-is-none does not exist: create it"},
		"no directory":        {[]string{"-f", "x", "-C", "run_test.go"}, "-C run_test.go is not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t)
			if code := s.run(t, tc.args...); code != exit.Usage || !strings.Contains(s.err.String(), tc.want) {
				t.Errorf("exit code %d: %s", code, s.err.String())
			}
		})
	}
}

// In the directory of the journals a command could write the Decision that approves it.
func TestLocalRefusesTheDirectoryOfJournals(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	t.Setenv("HOME", "/home/dev") // the real one may be in the directory of temporary files
	s := newSession(t)
	if code := s.run(t, "-f", "x", "-C", dir); code != exit.Usage || !strings.Contains(s.err.String(), "the agent could answer its own requests") {
		t.Errorf("exit code %d: %s", code, s.err.String())
	}
	s = newSession(t)
	if code := s.run(t, "-f", "x", "-C", os.TempDir()); code != exit.Usage || !strings.Contains(s.err.String(), "the agent could answer its own requests") {
		t.Errorf("exit code %d: %s", code, s.err.String())
	}
}

func TestLocalConfinementIsReported(t *testing.T) {
	for name, tc := range map[string]struct {
		commands, unconfined bool
		kernel               kernel
		want                 string
	}{
		"no commands":           {false, false, kernel{}, ""},
		"no Landlock":           {true, false, kernel{}, "this kernel cannot confine commands of the agent"},
		"too old a Landlock":    {true, false, kernel{landlock: 1}, "this kernel cannot confine commands of the agent"},
		"unconfined":            {true, true, kernel{}, "are NOT confined: they can read and change all that you can"},
		"before ports":          {true, false, kernel{landlock: 3}, "connect only to the proxy, for the hosts of spec.sandbox.egress.hosts"},
		"before signals":        {true, false, kernel{landlock: 5}, "NOT confined: they can end your other programs"},
		"a new kernel":          {true, false, kernel{landlock: 7}, "NOT confined: memory and CPU"},
		"memory that is closed": {true, false, kernel{landlock: 7, closed: true}, "They have no network at all"},
	} {
		t.Run(name, func(t *testing.T) {
			l := Run{Flags: Flags{unconfined: tc.unconfined}}
			notes, err := l.confinement(tc.commands, "/home/ann/app", tc.kernel)
			text := strings.Join(notes, "\n")
			if err != nil {
				text = err.Error()
			}
			if !strings.Contains(text, tc.want) || tc.want == "" && text != "" {
				t.Errorf("it says %q", text)
			}
		})
	}
}

// A user who interrupts a local Run ended it, also where its runner says that its pod is shut down; a
// runner that ends by itself without a result failed.
func TestEndOfALocalRun(t *testing.T) {
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tc := range map[string]struct {
		ctx  context.Context
		end  *events.RunFinished
		code int
		says string
	}{
		"interrupted":            {interrupted, &events.RunFinished{Reason: task.ReasonInterrupted}, exit.Interrupted, "Run local-1 ended, because you interrupted it. Its journal and log are in "},
		"interrupted by another": {t.Context(), &events.RunFinished{Reason: task.ReasonInterrupted}, exit.Interrupted, "Run local-1 was shut down. Its journal"},
		"finished meanwhile":     {interrupted, &events.RunFinished{Reason: task.ReasonFinished}, 0, "Run local-1 was shut down. Its journal"},
		"interrupted twice":      {interrupted, nil, exit.Interrupted, "Run local-1 was ended at once. Its journal and log are in "},
		"ended by itself":        {t.Context(), nil, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var errs bytes.Buffer
			l := Run{Streams: &terminal.Streams{Err: &errs}}
			err := l.printEnd(&watch{ctx: tc.ctx, name: "local-1", finished: tc.end, message: "was shut down"}, place{state: t.TempDir()})
			var ended exit.EndedError
			if got := errors.As(err, &ended); got != (tc.code != 0) || ended.Code != tc.code || !strings.Contains(errs.String(), tc.says) {
				t.Errorf("printEnd() = %v, printed %q", err, errs.String())
			}
		})
	}
}
