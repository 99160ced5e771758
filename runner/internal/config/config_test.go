package config_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/backend/state"
	"github.com/deckhand-dev/deckhand/runner/internal/backend/disk"
	"github.com/deckhand-dev/deckhand/runner/internal/config"
	"github.com/deckhand-dev/deckhand/runner/internal/place"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/localtest"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

const snapshot = `{"version":1,"agent":{"name":"fixer","instructions":"","parallelTools":1,"events":"Full"},"models":[{"name":"m","provider":"OpenAI","model":"gpt"}]}`

func written(change func(map[string]any)) []byte {
	t := map[string]any{
		"version": 1, "attempt": 1, "prompt": "go", "snapshotHash": task.Hash([]byte(snapshot)),
		"run": map[string]any{"namespace": "ns", "name": "r", "uid": "u"}, "limits": map[string]any{"steps": 3},
	}
	change(t)
	data, _ := json.Marshal(t)
	return data
}

// limit sets a limit of a task.
func limit(name string, value int64) func(map[string]any) {
	return func(m map[string]any) { m["limits"] = map[string]any{"steps": 3, name: value} }
}

func TestRead(t *testing.T) {
	cases := map[string]struct {
		change   func(map[string]any)
		snapshot string
		want     string // part of the error; empty: none
	}{
		"a task and its snapshot":     {},
		"a field that nobody knows":   {change: func(m map[string]any) { m["color"] = 1 }, want: `unknown field "color"`},
		"a version of tomorrow":       {change: func(m map[string]any) { m["version"] = 2 }, want: "version is 2; this runner knows versions up to 1"},
		"no version":                  {change: func(m map[string]any) { delete(m, "version") }, want: "version is 0"},
		"a snapshot that was swapped": {snapshot: snapshot + " ", want: "its hash is"},
		"a Run without a UID":         {change: func(m map[string]any) { m["run"] = map[string]any{"name": "r"} }, want: "no uid"},
		"no limit of steps":           {change: func(m map[string]any) { delete(m, "limits") }, want: "limits.steps"},
		"a limit below zero":          {change: limit("durationSeconds", -5), want: "limits.durationSeconds is -5; 0 means no limit"},
		"a limit of all time":         {change: limit("waitSeconds", 1<<62), want: "the most is 3153600000"},
		"an attempt that cannot be":   {change: func(m map[string]any) { m["attempt"] = 0 }, want: "the first is 1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.change == nil {
				tc.change = func(map[string]any) {}
			}
			if tc.snapshot == "" {
				tc.snapshot = snapshot
			}
			_, _, err := config.Read(written(tc.change), []byte(tc.snapshot))
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("Read() = %v, want %q", err, tc.want)
			}
		})
	}
}

// noKey is where nothing is to be read.
func noKey(task.SecretKey) func() (string, error) {
	return func() (string, error) { return "", os.ErrNotExist }
}

// at is a directory as a workspace.
func at(t *testing.T, dir string) *disk.Disk {
	t.Helper()
	d, err := disk.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// parts are a task that can be built.
func parts(t *testing.T) config.Parts {
	t.Helper()
	tk, s, err := config.Read(written(func(map[string]any) {}), []byte(snapshot))
	if err != nil {
		t.Fatal(err)
	}
	return config.Parts{Task: tk, Snapshot: s, Workspace: at(t, t.TempDir()), Key: noKey, Now: time.Now}
}

func TestBuild(t *testing.T) {
	cases := map[string]struct {
		change func(*config.Parts)
		tools  []string
		want   string // part of the message of Misconfigured; empty: none
	}{
		"an Agent without tools can end": {tools: []string{"finish", "reject"}},
		"the builtins": {
			change: func(p *config.Parts) { p.Snapshot.Agent.Tools = []task.Tool{{Builtin: "Think"}, {Builtin: "Files"}} },
			tools:  []string{"Edit", "Glob", "Grep", "Ls", "Read", "Write", "finish", "reject", "think"},
		},
		"files that are only read": {
			change: func(p *config.Parts) {
				p.Snapshot.Agent.Tools = []task.Tool{{Builtin: "Files", Allow: []string{"Read", "Ls", "Glob", "Grep"}}}
			},
			tools: []string{"Glob", "Grep", "Ls", "Read", "finish", "reject"},
		},
		"files without two of their tools": {
			change: func(p *config.Parts) {
				p.Snapshot.Agent.Tools = []task.Tool{{Builtin: "Files", Deny: []string{"Write", "Edit"}}}
			},
			tools: []string{"Glob", "Grep", "Ls", "Read", "finish", "reject"},
		},
		"a tool of files that nobody knows": {
			change: func(p *config.Parts) {
				p.Snapshot.Agent.Tools = []task.Tool{{Builtin: "Files", Allow: []string{"Delete"}}}
			},
			want: "Agent fixer: Files has no tool Delete, which allow names; it has Edit, Glob, Grep, Ls, Read, Write",
		},
		"a builtin that nobody knows": {
			change: func(p *config.Parts) { p.Snapshot.Agent.Tools = []task.Tool{{Builtin: "Teleport"}} },
			want:   `Agent fixer: this runner has no builtin "Teleport"; it has Ask, Browse, Files, HTTPRequest, Python, Recall, Shell, Task, Think, WebSearch`,
		},
		"a builtin that is listed twice": {
			change: func(p *config.Parts) { p.Snapshot.Agent.Tools = []task.Tool{{Builtin: "Think"}, {Builtin: "Think"}} },
			want:   `Agent fixer: two tools are named "think"`,
		},
		"a hook of a tool that is not there": {
			change: func(p *config.Parts) {
				p.Snapshot.Agent.Hooks = []task.Hook{{Name: "veto", Point: "BeforeTool", URL: "http://hooks", Tools: []string{"Write"}}}
			},
			want: "Agent fixer: the hook veto is for the tool Write, which the agent does not have; the model calls its tools finish, reject",
		},
		"a hook of a tool by its former name": {
			change: func(p *config.Parts) {
				p.Snapshot.Version = task.SnapshotVersion
				p.Snapshot.Agent.Hooks = []task.Hook{{Name: "veto", Point: "BeforeTool", URL: "http://hooks", Tools: []string{"finish"}}}
			},
			want: "Agent fixer: the hook veto is for the tool finish, which is called Finish: write Finish",
		},
		"a provider that nobody knows": {
			change: func(p *config.Parts) { p.Snapshot.Models[0].Provider = "Acme" },
			want:   `Model m: this runner has no provider "Acme"; it has Anthropic, AnthropicCompatible, Azure, Bedrock, DeepSeek, Kimi, Ollama, OpenAI, OpenAICompatible, OpenRouter`,
		},
		"an endpoint that is none": {
			change: func(p *config.Parts) { p.Snapshot.Models[0].Endpoint = "::" },
			want:   "Model m: ",
		},
		"a cost limit without prices": {
			change: func(p *config.Parts) { p.Task.Limits.CostMicroUSD = 1 },
			want:   "Model m has no prices, so limits.cost cannot be held",
		},
		"a sandbox without a shell": {
			change: func(p *config.Parts) {
				p.Sandbox, p.Snapshot.Sandbox = &localtest.Sandbox{}, &task.Sandbox{Image: "bare:1"}
				p.Snapshot.Agent.Tools = []task.Tool{{Builtin: "Shell"}}
			},
			want: "The image bare:1 of the sandbox has no shell, which the tool Shell needs",
		},
		"a sandbox without Python": {
			change: func(p *config.Parts) {
				p.Sandbox, p.Snapshot.Sandbox = &localtest.Sandbox{}, &task.Sandbox{Image: "bare:1"}
				p.Snapshot.Agent.Tools = []task.Tool{{Builtin: "Python"}}
			},
			want: "The image bare:1 of the sandbox has no python3, which the tool Python needs",
		},
		"an output schema that cannot be held": {
			change: func(p *config.Parts) { p.Snapshot.Agent.OutputSchema = []byte(`{"oneOf":[]}`) },
			want:   "Agent fixer: using the output schema",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := parts(t)
			if tc.change != nil {
				tc.change(&p)
			}
			built, err := config.NewRegistry().Build(t.Context(), p)
			if got := misconfigured(err); tc.want == "" && err != nil || !strings.Contains(got, tc.want) {
				t.Errorf("Build() = %v, want Misconfigured with %q", err, tc.want)
			}
			if diff := cmp.Diff(tc.tools, names(built)); diff != "" {
				t.Errorf("tools -want +got:\n%s", diff)
			}
		})
	}
}

// misconfigured is the message of an error with that reason; empty for others.
func misconfigured(err error) string {
	end, ok := errors.AsType[*task.EndError](err)
	if !ok || end.Reason != task.ReasonMisconfigured {
		return ""
	}
	return end.Message
}

// names are the tools that a model is told of.
func names(b config.Built) []string {
	if b.Engine.Actor.Tools == nil {
		return nil
	}
	var all []string
	for _, s := range b.Engine.Actor.Tools.Specs() {
		all = append(all, s.Name)
	}
	return all
}

type emptyModel struct{}

func (emptyModel) Stream(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
	return func(func(model.Delta, error) bool) {}
}

func TestARegistryCanBeAddedTo(t *testing.T) {
	r := config.NewRegistry()
	addModel(t, r, "acme", func(context.Context, registry.ModelSpec) (model.Model, error) { return emptyModel{}, nil })
	addTool(t, r, "Wait", func(context.Context, registry.ToolSpec) ([]tool.Tool, error) { return []tool.Tool{idle("wait")}, nil })
	addLayer(t, r, func(context.Context, registry.LayerSpec) (middleware.Layer, error) {
		return middleware.Layer{Name: "calm", Instructions: "Keep calm.", Tools: []tool.Tool{idle("rest")}}, nil
	})
	addBackend(t, r, "/handbook", func(context.Context, registry.BackendSpec) (backend.Driver, error) {
		d := state.New(state.Options{})
		return d, d.Write(t.Context(), "a.md", []byte("a"), backend.None)
	})
	p := parts(t)
	p.Snapshot.Models[0].Provider, p.Snapshot.Models[0].Driver = "Custom", "acme"
	p.Snapshot.Agent.Instructions = "Work."
	p.Snapshot.Agent.Tools = []task.Tool{{Custom: "Wait", TimeoutSeconds: 7}, {Builtin: "Files"}}
	built, err := r.Build(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	actor := built.Engine.Actor
	if wait, ok := actor.Tools.Find("wait"); !ok || wait.Timeout != 7*time.Second {
		t.Errorf("found %t, its timeout is not the Agent's", ok)
	}
	if _, ok := actor.Tools.Find("rest"); !ok {
		t.Error("the tool of the layer is not there")
	}
	said := actor.Agent.Instructions
	if !strings.HasPrefix(said, "Work.\n\nPlaces for files:\n- /handbook\n") || !strings.HasSuffix(said, "\n\nKeep calm.") {
		t.Errorf("the instructions are %q", actor.Agent.Instructions)
	}
	if got := calls(t, built, "Read", `{"path":"/handbook/a.md"}`); !strings.Contains(got, "a") || strings.Contains(got, "Error") {
		t.Errorf("the handbook says %q", got)
	}
}

// The name that an Agent gives a custom tool is its name, whatever the tool calls
// itself; several tools cannot have one name.
func TestACustomToolHasTheNameThatTheAgentGivesIt(t *testing.T) {
	r := config.NewRegistry()
	addTool(t, r, "Wait", func(context.Context, registry.ToolSpec) ([]tool.Tool, error) { return []tool.Tool{idle("wait")}, nil })
	addTool(t, r, "Both", func(context.Context, registry.ToolSpec) ([]tool.Tool, error) {
		return []tool.Tool{idle("one"), idle("two")}, nil
	})
	p := parts(t)
	p.Snapshot.Agent.Tools = []task.Tool{{Custom: "Wait", Name: "pause", TimeoutSeconds: 7}, {Custom: "Wait"}, {Custom: "Both"}}
	built, err := r.Build(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	for name, timeout := range map[string]time.Duration{"pause": 7 * time.Second, "wait": time.Hour, "one": time.Hour, "two": time.Hour} {
		if found, ok := built.Engine.Actor.Tools.Find(name); !ok || found.Timeout != timeout {
			t.Errorf("%s is not there as it should be", name)
		}
	}
	p.Snapshot.Agent.Tools = []task.Tool{{Custom: "Both", Name: "x"}}
	if _, err = r.Build(t.Context(), p); !strings.Contains(misconfigured(err), "Both is 2 tools, which cannot share the name x; remove name") {
		t.Errorf("Build() = %v", err)
	}
}

// idle is a tool that does nothing.
func idle(name string) tool.Tool {
	spec := tool.Spec{Timeout: time.Hour}
	spec.Name = name
	return tool.Typed(spec, func(context.Context, tool.Call, struct{}) (tool.Result, error) { return tool.Result{}, nil })
}

// calls is what the model reads of one call.
func calls(t *testing.T, built config.Built, name, args string) string {
	t.Helper()
	tl, ok := built.Engine.Actor.Tools.Find(name)
	if !ok {
		t.Fatalf("there is no tool %s", name)
	}
	result, err := tl.Call(t.Context(), tool.Call{ID: "s2c1", Name: name, Args: json.RawMessage(args), Emit: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	return result.Render()
}

// Where there is no cluster, the message names where the key is read from.
func TestAMissingKeyOutsideOfAClusterIsNamed(t *testing.T) {
	key := task.SecretKey{Secret: "anthropic", Key: "api-key"}
	read := func(task.SecretKey) func() (string, error) { return func() (string, error) { return "", nil } }
	for at, want := range map[place.Place]string{
		place.Local:   "Reading the key api-key of the Secret anthropic: it is empty. Write the key where you read it from",
		place.Program: "Agent.Key returned no key for 15s",
	} {
		t.Run(want, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, err := config.AwaitKeys(t.Context(), at, []task.SecretKey{key}, "local", read)
				if err == nil || !strings.HasPrefix(err.Error(), "Misconfigured: "+want) {
					t.Errorf("AwaitKeys() = %v, want %s", err, want)
				}
			})
		})
	}
}

// The error of a key that is deleted in the middle of a Run says how to add it, and names no path of the pod.
func TestAMissingMountedKeySaysHowToAddIt(t *testing.T) {
	dir := t.TempDir()
	key := task.SecretKey{Secret: "gpt", Key: "api-key"}
	file := filepath.Join(dir, "gpt", "api-key")
	read := config.MountedKey(dir, key)
	const want = "Secret gpt has no key api-key: add the key, or create the Secret with kubectl create secret generic gpt --from-literal=api-key=…" // shorter than what a status keeps of an error
	check := func(when string) {
		t.Helper()
		if _, err := read(); !errors.Is(err, os.ErrNotExist) || err.Error() != want {
			t.Errorf("%s: %v", when, err)
		}
	}
	check("without the Secret")
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	check("with an empty key")
	if err := os.WriteFile(file, []byte("sk-1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if value, err := read(); value != "sk-1" || err != nil {
		t.Errorf("got %q, %v", value, err)
	}
}

func TestAwaitKeys(t *testing.T) {
	first, second := task.SecretKey{Secret: "anthropic", Key: "api-key"}, task.SecretKey{Secret: "tavily", Key: "token"}
	dir := t.TempDir()
	read := func(k task.SecretKey) func() (string, error) { return config.KeyFile(filepath.Join(dir, k.Secret)) }
	t.Run("where none is named none is waited for", func(t *testing.T) {
		if _, err := config.AwaitKeys(t.Context(), place.Pod, nil, "ns", nil); err != nil {
			t.Error(err)
		}
	})
	t.Run("a key that never comes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			_, err := config.AwaitKeys(t.Context(), place.Pod, []task.SecretKey{first}, "team-a", read)
			var end *task.EndError
			if !errors.As(err, &end) || end.Reason != task.ReasonSecretMissing || time.Since(began) != 15*time.Second {
				t.Fatalf("after %s: %v", time.Since(began), err)
			}
			if want := `Secret anthropic has no key api-key in namespace team-a; if the Secret exists, add the key with kubectl patch secret anthropic --patch='{"stringData":{"api-key":"…"}}', else create it with kubectl create secret generic anthropic --from-literal=api-key=…`; !strings.HasPrefix(end.Message, want) {
				t.Errorf("message %q, want %q", end.Message, want)
			}
		})
	})
	t.Run("several keys that never come are named at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			_, err := config.AwaitKeys(t.Context(), place.Pod, []task.SecretKey{first, second}, "team-a", read)
			var end *task.EndError
			if !errors.As(err, &end) || end.Reason != task.ReasonSecretMissing || time.Since(began) != 15*time.Second {
				t.Fatalf("after %s: %v", time.Since(began), err)
			}
			if want := "2 keys of Secrets are missing in namespace team-a: key api-key of Secret anthropic, key token of Secret tavily; for the first, if the Secret exists, add the key with kubectl patch secret anthropic "; !strings.HasPrefix(end.Message, want) {
				t.Errorf("message %q, want %q", end.Message, want)
			}
		})
	})
	t.Run("keys that come late", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			time.AfterFunc(5*time.Second, func() { _ = os.WriteFile(filepath.Join(dir, "tavily"), []byte("tv-late-key"), 0o600) })
			time.AfterFunc(10*time.Second, func() { _ = os.WriteFile(filepath.Join(dir, "anthropic"), []byte("sk-late-key\n"), 0o600) })
			secrets, err := config.AwaitKeys(t.Context(), place.Pod, []task.SecretKey{first, second}, "team-a", read)
			if err != nil || len(secrets) != 2 || string(secrets[0].Value) != "sk-late-key" || secrets[1].Name != "tavily" {
				t.Errorf("AwaitKeys() = %v, %v", secrets, err)
			}
		})
	})
}

// A Run that is in flight when the operator is upgraded is given the snapshot that was
// stored before. The documents are never changed once their version is released.
func TestReadsEverySnapshotThatWasEverStored(t *testing.T) {
	files, err := filepath.Glob("../../../internal/revision/stored/testdata/revisions/v*/runner*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no documents, error %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		of := written(func(m map[string]any) { m["snapshotHash"] = task.Hash(data) })
		_, s, err := config.Read(of, data)
		if err == nil {
			err = builtOf(t, s)
		}
		if err != nil {
			t.Errorf("%s: a change of code keeps runners from reading what operators have stored: %v. Do not edit the file: take the change back, or raise task.Version and convert", file, err)
		}
	}
}

// builtOf builds what a stored snapshot says, without what is outside of the runner.
func builtOf(t *testing.T, s task.Snapshot) error {
	t.Helper()
	r := config.NewRegistry()
	addModel(t, r, "acme", func(context.Context, registry.ModelSpec) (model.Model, error) { return emptyModel{}, nil })
	addTool(t, r, "crm", func(context.Context, registry.ToolSpec) ([]tool.Tool, error) { return nil, nil })
	p := parts(t)
	s.Toolsets, s.Sandbox = nil, nil
	s.Agent.Tools = slices.DeleteFunc(s.Agent.Tools, func(t task.Tool) bool { return t.Toolset != "" || t.Builtin == "Shell" })
	p.Snapshot = s
	p.Task.Input = json.RawMessage(`{"what":"it"}`)
	_, err := r.Build(t.Context(), p)
	return err
}
