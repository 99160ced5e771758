package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// flood writes so many bytes of the same.
func flood(out io.Writer, what string, n int64) {
	block := []byte(strings.Repeat(what, max(1, (64<<10)/len(what))))
	for sent := int64(0); sent < n; sent += int64(len(block)) {
		if _, err := out.Write(block); err != nil {
			return
		}
	}
}

// memory is how much more is in use during f than before, at its highest.
func memory(f func()) uint64 {
	inUse := func() uint64 {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	runtime.GC()
	before, highest := inUse(), uint64(0)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			highest = max(highest, inUse())
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	f()
	close(stop)
	<-stopped
	return highest - min(before, highest)
}

// Each is what a server does in the place of an answer to a call, and what the
// model reads then. None takes more memory than a message may have a few times
// over.
func TestHostileAnswers(t *testing.T) {
	parts := 4 << 20
	if testing.Short() {
		parts = 4 << 14
	}
	cases := map[string]struct {
		answer func(r request, out io.Writer)
		want   string
	}{
		"a gigabyte in one line": {
			func(_ request, out io.Writer) { flood(out, "x", 1<<30) },
			"the connection to the MCP server of files was lost during the call; it may have partly happened: the connection was lost (it sent a message of more than 16 MiB)",
		},
		"many lines that are nothing": {
			func(r request, out io.Writer) {
				flood(out, strings.Repeat("log ", 100)+"\n", 64<<20)
				fmt.Fprintln(out, answerTo(r, `{"content":[{"type":"text","text":"after all"}]}`))
			},
			"after all",
		},
		"many notifications": {
			func(r request, out io.Writer) {
				flood(out, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"`+strings.Repeat("y", 60<<10)+`"}}`+"\n", 24<<20)
				fmt.Fprintln(out, answerTo(r, `{"content":[{"type":"text","text":"after all"}]}`))
			},
			"after all",
		},
		"many requests": {
			func(r request, out io.Writer) {
				for i := 0; i < 100_000; i += 1000 {
					flood(out, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"roots/list"}`, i)+"\n", 1)
				}
				fmt.Fprintln(out, answerTo(r, `{"content":[{"type":"text","text":"after all"}]}`))
			},
			"after all",
		},
		"twice": {
			func(r request, out io.Writer) {
				fmt.Fprintln(out, answerTo(r, `{"content":[{"type":"text","text":"one"}]}`))
				fmt.Fprintln(out, answerTo(r, `{"content":[{"type":"text","text":"two"}]}`))
			},
			"one",
		},
		"to questions that nobody asked": {
			func(r request, out io.Writer) {
				for _, id := range []string{`99999`, `"x"`, `-1`, `1e99`, `null`, `{}`, `[1]`, `true`} {
					fmt.Fprintln(out, `{"jsonrpc":"2.0","id":`+id+`,"result":{}}`)
				}
				fmt.Fprintln(out, answerTo(r, `{"content":[{"type":"text","text":"mine"}]}`))
			},
			"mine",
		},
		"in an array, as old servers do": {
			func(r request, out io.Writer) {
				fmt.Fprintln(out, `[{"jsonrpc":"2.0","id":99,"result":{}},`+answerTo(r, `{"content":[{"type":"text","text":"in it"}]}`)+`]`)
			},
			"in it",
		},
		"an array without an end": {
			func(r request, out io.Writer) {
				fmt.Fprintln(out, `[`+strings.Repeat(`{"jsonrpc":"2.0","id":99,"result":{}},`, 10_000)+`{}]`)
				fmt.Fprintln(out, answerTo(r, `{"content":[{"type":"text","text":"after all"}]}`))
			},
			"after all",
		},
		"very deep": {
			func(r request, out io.Writer) {
				fmt.Fprintln(out, `{"jsonrpc":"2.0","id":1,"result":`+strings.Repeat(`[`, 1<<20)+strings.Repeat(`]`, 1<<20)+`}`)
				fmt.Fprintln(out, answerTo(r, `{"content":[{"type":"text","text":"flat"}]}`))
			},
			"flat",
		},
		"something else than a result": {
			func(r request, out io.Writer) {
				fmt.Fprintln(out, answerTo(r, `{"content":[{"type":"hologram"}]}`))
			},
			"[content of type \"hologram\", which cannot be shown; its JSON follows]\n{\"type\":\"hologram\"}",
		},
		"millions of parts": {
			func(r request, out io.Writer) {
				fmt.Fprintln(out, answerTo(r, `{"content":[`+strings.Repeat(`{},`, parts)+`{"type":"text","text":"after all"}]}`))
			},
			"[cut: ",
		},
		"no content": {
			func(r request, out io.Writer) { fmt.Fprintln(out, answerTo(r, `{}`)) },
			"[done; the tool answered nothing]",
		},
		"null": {
			func(r request, out io.Writer) { fmt.Fprintln(out, answerTo(r, `null`)) },
			"[done; the tool answered nothing]",
		},
		"parts that are null": {
			func(r request, out io.Writer) { fmt.Fprintln(out, answerTo(r, `{"content":[null]}`)) },
			"[content without a type, which cannot be shown; its JSON follows]\nnull",
		},
		"a resource without one": {
			func(r request, out io.Writer) {
				fmt.Fprintln(out, answerTo(r, `{"content":[{"type":"resource"},{"type":"text","text":"x"}]}`))
			},
			"x",
		},
		"a failure without words": {
			func(r request, out io.Writer) { fmt.Fprintln(out, answerTo(r, `{"isError":true}`)) },
			"Error: The tool failed and did not say why.",
		},
		"a question": {
			func(r request, out io.Writer) {
				fmt.Fprintln(out, answerTo(r, `{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"x"}}}}`))
			},
			"only a person could give",
		},
		"more than a model should read": {
			func(r request, out io.Writer) {
				fmt.Fprintln(out, answerTo(r, `{"content":[{"type":"text","text":"`+strings.Repeat("ä", 1<<20)+`"}]}`))
			},
			"[cut: 1024 KB more]",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := begin(t, stdio(), func(ctx context.Context, in io.Reader, out, errs io.Writer) int {
				return scripted(only("tools/call", func(r request, say func(string)) bool {
					say("")
					tc.answer(r, out)
					return true
				}))(ctx, in, out, errs)
			})
			var got string
			used := memory(func() { got = use(t, s, "do", `{}`).Render() })
			if !strings.Contains(got, tc.want) {
				t.Errorf("got %.500s, want %s", got, tc.want)
			}
			if len(got) > maxResult+1000 {
				t.Errorf("the model reads %d bytes", len(got))
			}
			if used > 160<<20 {
				t.Errorf("it took %d MiB", used>>20)
			}
		})
	}
}

// A server may be unwilling in other ways than with its answers.
func TestHostileCatalogs(t *testing.T) {
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `{"name":"t%05d","description":"%s","inputSchema":{"type":"object"}},`, i, strings.Repeat("d", 10))
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	cases := map[string]struct {
		list string
		want int
	}{
		"more tools than a model can choose from": {`{"tools":[` + many(5000) + `]}`, maxTools},
		"pages without an end":                    {`{"tools":[{"name":"a","inputSchema":{}}],"nextCursor":"again"}`, 1},
		"a schema that is too large":              {`{"tools":[{"name":"a","inputSchema":{"type":"object","description":"` + strings.Repeat("x", maxSchema) + `"}}]}`, 1},
		"a description that is too long":          {`{"tools":[{"name":"a","description":"` + strings.Repeat("x", 1<<20) + `","inputSchema":{"type":"object"}}]}`, 1},
		"a name that is too long":                 {`{"tools":[{"name":"` + strings.Repeat("x", 1<<20) + `","inputSchema":{"type":"object"}}]}`, 0},
		"null":                                    {`null`, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n := 0
			s := begin(t, stdio(), scripted(only("tools/list", func(r request, say func(string)) bool {
				n++
				say(answerTo(r, strings.ReplaceAll(tc.list, `"again"`, fmt.Sprintf(`"%d"`, n))))
				return true
			})))
			tools, err := s.Tools(nil, nil)
			if err != nil || len(tools) != tc.want {
				t.Errorf("%d tools, %v; want %d", len(tools), err, tc.want)
			}
			if n > maxPages {
				t.Errorf("%d pages were read", n)
			}
			for _, one := range tools {
				if spec := one.Spec; len(spec.Input) > maxSchema || len(spec.Description) > maxDescription+len("…") {
					t.Errorf("a schema of %d bytes, a description of %d", len(spec.Input), len(spec.Description))
				}
			}
		})
	}
}

func TestASandboxThatIsLost(t *testing.T) {
	if got := describeExit(sandbox.Exit{Code: -1, Cause: sandbox.SandboxLost, Detail: "the sandbox was restarted"}, ""); got != "it ended: the sandbox was restarted" {
		t.Errorf("ending() = %q", got)
	}
	if got := describeExit(sandbox.Exit{Code: -1, Signal: "SIGKILL", Cause: sandbox.Exited}, "x"); got != "it was ended by the signal SIGKILL; its last words: x" {
		t.Errorf("ending() = %q", got)
	}
}

// An old server may not answer what it does not know, or may die of it.
func TestOldServers(t *testing.T) {
	cases := map[string]reply{
		"one that does not answer what it does not know": only("server/discover", func(_ request, say func(string)) bool { say(""); return true }),
		"one that dies of what it does not know":         only("server/discover", func(request, func(string)) bool { return false }),
		"one that is slow":                               only("initialize", func(request, func(string)) bool { time.Sleep(20 * time.Second); return true }),
	}
	for name, special := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := Connect(t.Context(), Options{Toolset: stdio(), Sandbox: always(scripted(special))})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				if got := use(t, s, "do", `{}`).Render(); got != "done" {
					t.Errorf("got %s", got)
				}
			})
		})
	}
}

// A server that does not read holds up nobody longer than a call may take.
func TestAServerThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Connect(t.Context(), Options{Toolset: stdio(), Sandbox: always(func(ctx context.Context, in io.Reader, out, errs io.Writer) int {
			deaf := false
			return scripted(func(r request, _ func(string)) bool {
				if deaf {
					<-ctx.Done()
				}
				deaf = r.Method == "tools/list"
				return true
			})(ctx, in, out, errs)
		})})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 { // more than fit into what is under way
			under := named(t, s, "do")
			go func() { _, _ = under.Call(t.Context(), tool.Call{Args: []byte(`{}`), Emit: func(string) {}}) }()
		}
		has(t, use(t, s, "do", `{}`).Render(), "did not answer within 2m0s")
		began := time.Now()
		s.Close()
		if took := time.Since(began); took > 2*closeTimeout {
			t.Errorf("closing took %v", took)
		}
	})
}

func TestCloseEndsWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Connect(t.Context(), Options{Toolset: stdio(), Sandbox: always(scripted(only("tools/call", func(_ request, say func(string)) bool {
			say("")
			return true
		})))})
		if err != nil {
			t.Fatal(err)
		}
		under := named(t, s, "do")
		done := make(chan tool.Result)
		go func() {
			r, err := under.Call(t.Context(), tool.Call{Args: []byte(`{}`), Emit: func(string) {}})
			if err != nil {
				t.Errorf("Call() = %v", err)
			}
			done <- r
		}()
		synctest.Wait()
		s.Close()
		has(t, (<-done).Render(), "may have partly happened")
		s.Close()
		has(t, use(t, s, "do", `{}`).Render(), "the session is being closed")
	})
}

func TestConnectEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("stopped")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, why)
		defer cancel()
		_, err := Connect(ctx, Options{Toolset: stdio(), Sandbox: always(func(ctx context.Context, _ io.Reader, _, _ io.Writer) int {
			<-ctx.Done()
			return 0
		})})
		if !errors.Is(err, why) {
			t.Errorf("Connect() = %v", err)
		}
	})
}
