package cli

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

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// localFiles are manifests, by a name for each.
var localFiles = map[string]string{
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

// localTaskOf returns the task of files and options.
func localTaskOf(t *testing.T, files string, o runOptions) (*localTask, string, error) {
	t.Helper()
	dir := t.TempDir()
	for name := range strings.FieldsSeq(files) {
		file := filepath.Join(dir, name+".yaml")
		if err := os.WriteFile(file, []byte(localFiles[name]), 0o600); err != nil {
			t.Fatal(err)
		}
		o.files = append(o.files, file)
	}
	s := newSession(t)
	o.name, o.local.enabled = "try", true
	got, err := localRun{Streams: &s.Streams, o: o.description, flags: o.local}.localTask(t.Context(), "/home/ann/app")
	return got, s.err.String(), err
}

func TestLocalTask(t *testing.T) {
	t.Setenv("TEST_MODEL_KEY", "from-the-environment")
	got, _, err := localTaskOf(t, "model agent run", runOptions{local: localOptions{modelKey: "TEST_MODEL_KEY"}})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.MarshalIndent(got, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	const file = "testdata/localtask.json"
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
		local localOptions
		want  string
	}{
		"--secret wins":                 {"model agent secret", localOptions{secrets: []string{"keys/api-key=TEST_SECRET"}, modelKey: "TEST_MODEL_KEY"}, "of-the-secret"},
		"then a Secret in the files":    {"model agent secret", localOptions{modelKey: "TEST_MODEL_KEY"}, "from-the-file"},
		"then the variable for Models":  {"model agent", localOptions{modelKey: "TEST_MODEL_KEY"}, "of-the-model"},
		"and nothing that is not named": {"model agent", localOptions{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := localTaskOf(t, tc.files, runOptions{description: description{prompt: "Work."}, local: tc.local})
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

func TestAnEndpointOfTheCommandLineReplacesThatOfItsModel(t *testing.T) {
	t.Setenv("TEST_MODEL_KEY", "k")
	const url = "http://127.0.0.1:4711/v1"
	o := runOptions{description: description{prompt: "x"}, local: localOptions{modelKey: "TEST_MODEL_KEY", endpoints: []string{"m=" + url}}}
	got, _, err := localTaskOf(t, "model agent", o)
	if err != nil || got.Snapshot.Models[0].Endpoint != url {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestLocalRefusals(t *testing.T) {
	t.Setenv("TEST_MODEL_KEY", "k")
	key := localOptions{modelKey: "TEST_MODEL_KEY"}
	for name, tc := range map[string]struct {
		files string
		o     runOptions
		want  string // part of the error or of what is printed
	}{
		"no Agent":                     {"model", runOptions{}, "the files have no Agent: add the file"},
		"several Agents":               {"model agent other", runOptions{}, "name one of other, worker"},
		"an Agent that is not there":   {"model agent", runOptions{description: description{target: "reviewer"}}, "the Agent reviewer is not in the files, which have: worker"},
		"a Workflow":                   {"model agent workflow", runOptions{}, "run the Workflow release in a cluster"},
		"a named Workflow":             {"model agent", runOptions{description: description{target: "workflow/release"}}, "run the Workflow release in a cluster"},
		"several Runs":                 {"model agent run workflow", runOptions{}, "the files have 2 Runs"},
		"a Run without its Agent":      {"model other run", runOptions{}, "the Agent worker is not in the files"},
		"no Model":                     {"agent", runOptions{description: description{prompt: "x"}}, `Model "m" not found`},
		"no prompt":                    {"model agent", runOptions{local: key}, "Agent worker needs a prompt: add -p TEXT"},
		"no input":                     {"model typed", runOptions{local: key}, "Agent typed needs a prompt or an input: add -p TEXT, or --input NAME=VALUE"},
		"an input that does not fit":   {"model typed", runOptions{description: description{input: []string{"count=1.5"}}, local: key}, "spec.input: does not fit the input of Agent typed: `count` must be an integer"},
		"an input that is a text":      {"model typed", runOptions{description: description{input: []string{"count=x"}}, local: key}, "--input count=x: write a whole number, for example --input count=3"},
		"a child Run":                  {"model other delegates", runOptions{description: description{target: "boss", prompt: "x"}, local: key}, "the Agent boss gives work to the Agent other in a child Run, which needs a cluster"},
		"an MCP server in a container": {"model server", runOptions{description: description{prompt: "x"}, local: key}, "the Toolset hub starts its server in a container"},
		"a custom runner":              {"model custom", runOptions{description: description{prompt: "x"}, local: key}, "needs the runner of the image mine:1"},
		"an unknown field":             {"model broken", runOptions{description: description{prompt: "x"}, local: key}, "spec.instruction: unknown field: write instructions"},
		"a value in place of a name":   {"model agent", runOptions{description: description{prompt: "x"}, local: localOptions{modelKey: "sk-0123"}}, "the environment variable of --model-key is not set or empty"},
		"an endpoint of no Model":      {"model agent", runOptions{description: description{prompt: "x"}, local: localOptions{modelKey: "TEST_MODEL_KEY", endpoints: []string{"n=http://127.0.0.1:1/v1"}}}, "--endpoint n: the files have no such Model, but: m"},
		"an endpoint without a name":   {"model agent", runOptions{description: description{prompt: "x"}, local: localOptions{modelKey: "TEST_MODEL_KEY", endpoints: []string{"http://127.0.0.1:1/v1"}}}, "write KEY=VALUE"},
		"an endpoint that is no URL":   {"model agent", runOptions{description: description{prompt: "x"}, local: localOptions{modelKey: "TEST_MODEL_KEY", endpoints: []string{"m=localhost:1"}}}, "--endpoint m=localhost:1: "},
		"an endpoint that is empty":    {"model agent", runOptions{description: description{prompt: "x"}, local: localOptions{modelKey: "TEST_MODEL_KEY", endpoints: []string{"m="}}}, "--endpoint m=: "},
		"a secret without a key":       {"model agent", runOptions{description: description{prompt: "x"}, local: localOptions{secrets: []string{"keys=V"}}}, "write NAME/KEY=VARIABLE"},
	} {
		t.Run(name, func(t *testing.T) {
			_, printed, err := localTaskOf(t, tc.files, tc.o)
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
		"--local without files":   {[]string{"--local"}, "--local needs the manifests"},
		"--local with --from":     {[]string{"--local", "-f", "x", "--from", "run/a"}, "--from names something in a cluster"},
		"--local with -o":         {[]string{"--local", "-f", "x", "-o", "json"}, "print the events with --json"},
		"the home directory":      {[]string{"--local", "-f", "x", "-C", os.Getenv("HOME")}, "has your home directory in it"},
		"what has it":             {[]string{"--local", "-f", "x", "-C", "/"}, "has your home directory in it"},
		"a missing directory":     {[]string{"--local", "-f", "x", "-C", "there-is-none"}, "-C there-is-none does not exist: create it"},
		"no directory":            {[]string{"--local", "-f", "x", "-C", "local_test.go"}, "-C local_test.go is not a directory"},
		"flags of --local":        {[]string{"a", "--model-key", "X"}, "are for --local"},
		"two files for a cluster": {[]string{"-f", "a", "-f", "b"}, "-f names one file with a Run"},
		"--json without --wait":   {[]string{"a", "--json"}, "add --wait, or --local"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t)
			if code := s.run(t, append([]string{"run"}, tc.args...)...); code != exitUsage || !strings.Contains(s.err.String(), tc.want) {
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
	if code := s.run(t, "run", "--local", "-f", "x", "-C", dir); code != exitUsage || !strings.Contains(s.err.String(), "the agent could answer its own requests") {
		t.Errorf("exit code %d: %s", code, s.err.String())
	}
	s = newSession(t)
	if code := s.run(t, "run", "--local", "-f", "x", "-C", os.TempDir()); code != exitUsage || !strings.Contains(s.err.String(), "the agent could answer its own requests") {
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
			l := localRun{flags: localOptions{unconfined: tc.unconfined}}
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
		"interrupted":            {interrupted, &events.RunFinished{Reason: task.ReasonInterrupted}, exitInterrupted, "Run local-1 ended, because you interrupted it. Its journal and log are in "},
		"interrupted by another": {t.Context(), &events.RunFinished{Reason: task.ReasonInterrupted}, exitInterrupted, "Run local-1 was shut down. Its journal"},
		"finished meanwhile":     {interrupted, &events.RunFinished{Reason: task.ReasonFinished}, 0, "Run local-1 was shut down. Its journal"},
		"interrupted twice":      {interrupted, nil, exitInterrupted, "Run local-1 was ended at once. Its journal and log are in "},
		"ended by itself":        {t.Context(), nil, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var errs bytes.Buffer
			l := localRun{Streams: &Streams{Err: &errs}}
			err := l.printLocalEnd(&localWatch{ctx: tc.ctx, name: "local-1", finished: tc.end, message: "was shut down"}, localPlace{state: t.TempDir()})
			var ended endedError
			if got := errors.As(err, &ended); got != (tc.code != 0) || ended.code != tc.code || !strings.Contains(errs.String(), tc.says) {
				t.Errorf("printLocalEnd() = %v, printed %q", err, errs.String())
			}
		})
	}
}
