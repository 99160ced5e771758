package config_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/backend/disk"
	"github.com/deckhand-dev/deckhand/runner/config"
	"github.com/deckhand-dev/deckhand/runner/model"
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

// parts are a task that can be built.
func parts(t *testing.T) config.Parts {
	t.Helper()
	d, err := disk.Open(t.TempDir(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	tk, s, err := config.Read(written(func(map[string]any) {}), []byte(snapshot))
	if err != nil {
		t.Fatal(err)
	}
	return config.Parts{Task: tk, Snapshot: s, Workspace: d}
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
		"a builtin that nobody knows": {
			change: func(p *config.Parts) { p.Snapshot.Agent.Tools = []task.Tool{{Builtin: "Teleport"}} },
			want:   `Agent fixer: this runner has no builtin "Teleport"; it has Files, Think`,
		},
		"a builtin that is listed twice": {
			change: func(p *config.Parts) { p.Snapshot.Agent.Tools = []task.Tool{{Builtin: "Think"}, {Builtin: "Think"}} },
			want:   `Agent fixer: two tools are named "think"`,
		},
		"a provider that nobody knows": {
			change: func(p *config.Parts) { p.Snapshot.Models[0].Provider = "Acme" },
			want:   `Model m: this runner has no provider "Acme"; it has OpenAI, OpenAICompatible`,
		},
		"an endpoint that is none": {
			change: func(p *config.Parts) { p.Snapshot.Models[0].Endpoint = "::" },
			want:   "Model m: ",
		},
		"a cost limit without prices": {
			change: func(p *config.Parts) { p.Task.Limits.CostMicroUSD = 1 },
			want:   "Model m has no prices, so limits.cost cannot be held",
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
			built, err := config.NewRegistry().Build(p)
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
	if b.Engine.Tools == nil {
		return nil
	}
	var all []string
	for _, s := range b.Engine.Tools.Specs() {
		all = append(all, s.Name)
	}
	return all
}

type mute struct{}

func (mute) Stream(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
	return func(func(model.Delta, error) bool) {}
}

func TestARegistryCanBeAddedTo(t *testing.T) {
	r := config.NewRegistry()
	r.Model("Acme", func(config.ModelSpec) (model.Model, error) { return mute{}, nil })
	r.Tool("Wait", func(config.ToolSpec) ([]tool.Tool, error) {
		spec := tool.Spec{Timeout: time.Hour}
		spec.Name = "wait"
		return []tool.Tool{tool.Typed(spec, func(context.Context, tool.Call, struct{}) (tool.Result, error) {
			return tool.Result{}, nil
		})}, nil
	})
	p := parts(t)
	p.Snapshot.Models[0].Provider = "Acme"
	p.Snapshot.Agent.Tools = []task.Tool{{Builtin: "Wait", TimeoutSeconds: 7}}
	built, err := r.Build(p)
	if err != nil {
		t.Fatal(err)
	}
	wait, ok := built.Engine.Tools.Find("wait")
	if !ok || wait.Spec().Timeout != 7*time.Second {
		t.Errorf("found %t, its timeout is not the Agent's", ok)
	}
}

func TestAwaitKey(t *testing.T) {
	m := task.Model{Name: "m", SecretKey: task.SecretKey{Secret: "anthropic", Key: "api-key"}}
	path := filepath.Join(t.TempDir(), "key")
	t.Run("a Model without a Secret needs none", func(t *testing.T) {
		if _, err := config.AwaitKey(t.Context(), task.Model{}, "ns", nil); err != nil {
			t.Error(err)
		}
	})
	t.Run("a key that never comes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			_, err := config.AwaitKey(t.Context(), m, "team-a", config.KeyFile(path))
			var end *task.EndError
			if !errors.As(err, &end) || end.Reason != task.ReasonSecretMissing || time.Since(began) != 15*time.Second {
				t.Fatalf("after %s: %v", time.Since(began), err)
			}
			if want := "Secret anthropic has no key api-key in namespace team-a"; !strings.HasPrefix(end.Message, want) {
				t.Errorf("message %q, want %q", end.Message, want)
			}
		})
	})
	t.Run("a key that comes late", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			time.AfterFunc(10*time.Second, func() { _ = os.WriteFile(path, []byte("sk-late-key\n"), 0o600) })
			secrets, err := config.AwaitKey(t.Context(), m, "team-a", config.KeyFile(path))
			if err != nil || len(secrets) != 1 || string(secrets[0].Value) != "sk-late-key" {
				t.Errorf("AwaitKey() = %v, %v", secrets, err)
			}
		})
	})
}
