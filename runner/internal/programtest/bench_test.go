package programtest_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// BenchmarkStart is the time from starting the program to its first byte at
// the model.
func BenchmarkStart(b *testing.B) { start(b, "Work.") }

// BenchmarkStartWithPaths is the same for an Agent whose instructions read its input.
func BenchmarkStartWithPaths(b *testing.B) { start(b, "Work on ${{ input.topic }}.") }

// BenchmarkStartWithAnExpression is the same for an expression that needs CEL.
func BenchmarkStartWithAnExpression(b *testing.B) {
	start(b, "Work on ${{ input.topic.upperAscii() }}.")
}

func start(b *testing.B, instructions string) {
	b.Helper()
	listener := listen(b)
	t := newBench(b, endpoint(listener), func(tk *task.Task, s *task.Snapshot) {
		s.Agent.Instructions, tk.Input = instructions, json.RawMessage(`{"topic":"tides"}`)
		s.Agent.InputSchema = json.RawMessage(`{"type":"object","required":["topic"],"properties":{"topic":{"type":"string"}}}`)
	})
	n := 0
	untilAsked(b, listener, func() *bench {
		n++
		fresh := *t
		fresh.state += strconv.Itoa(n)
		return &fresh
	})
}

// BenchmarkResume is the same where the journal has a thousand steps of 20 KB.
func BenchmarkResume(b *testing.B) {
	listener := listen(b)
	t := newBench(b, endpoint(listener), nil)
	fill(b, t.state)
	untilAsked(b, listener, func() *bench { return t })
}

// listen is a model that never answers.
func listen(b *testing.B) net.Listener {
	b.Helper()
	l, err := new(net.ListenConfig).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	return l
}

func endpoint(l net.Listener) string { return "http://" + l.Addr().String() + "/v1" }

// untilAsked measures runs from their start to the first byte at the model, on
// the clock and in time of the processor.
func untilAsked(b *testing.B, listener net.Listener, next func() *bench) {
	b.Helper()
	program(b, "runner-local")
	var busy time.Duration
	for b.Loop() {
		c := next().command(b)
		untilByte(b, listener, c)
		b.StopTimer()
		_ = c.Process.Kill()
		_ = c.Wait()
		busy += c.ProcessState.UserTime() + c.ProcessState.SystemTime()
		b.StartTimer()
	}
	b.ReportMetric(float64(busy.Milliseconds())/float64(b.N), "cpu-ms/op")
}

// untilByte starts a run and returns the time to the first byte at the model.
func untilByte(b *testing.B, listener net.Listener, c *exec.Cmd) time.Duration {
	b.Helper()
	began := time.Now()
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	conn, err := listener.Accept()
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	if _, err := bufio.NewReader(conn).ReadByte(); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}

// BenchmarkContinue takes over a session of a thousand steps of 20 KB, and resumes one in turn. The first has to read a
// journal in the folder of its source, and to begin one of its own.
func BenchmarkContinue(b *testing.B) {
	listener := listen(b)
	resumed := newBench(b, endpoint(listener), nil)
	fill(b, resumed.state)
	next := newBench(b, endpoint(listener), func(tk *task.Task, _ *task.Snapshot) {
		tk.Run.UID, tk.Continue = "next", &task.Continue{Run: "one", RunUID: "local"}
	})
	source := b.TempDir()
	fill(b, source)
	state := next.state
	times := map[*bench][]time.Duration{}
	for n := 0; b.Loop(); n++ {
		next.state = state + strconv.Itoa(n)
		if err := errors.Join(os.Mkdir(next.state, 0o700), os.Symlink(source, journal.SourceDir(next.state))); err != nil {
			b.Fatal(err)
		}
		for _, t := range []*bench{resumed, next} {
			c := t.command(b)
			times[t] = append(times[t], untilByte(b, listener, c))
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	}
	slices.Sort(times[resumed])
	slices.Sort(times[next])
	resume, takeOver := times[resumed][len(times[resumed])/2], times[next][len(times[next])/2]
	b.ReportMetric(float64(resume.Microseconds())/1000, "resume-ms")
	b.ReportMetric(float64(takeOver.Microseconds())/1000, "continue-ms")
	b.ReportMetric(max(float64((takeOver-resume).Microseconds())/1000, 0), "more-ms")
}

// fill writes a journal of a thousand steps of 20 KB.
func fill(b *testing.B, dir string) {
	b.Helper()
	d, err := journal.Open(journal.Options{Dir: dir, RunUID: "local", Attempt: 1, Now: time.Now})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	text := strings.Repeat("All work and no play makes \"Jack\" a dull boy.\n", 20<<10/46)
	for i := range int64(1000) {
		role := step.RoleUser
		if i%2 == 1 {
			role = step.RoleAssistant
		}
		s := step.Step{Seq: i + 1, Role: role, Parts: []step.Part{{Kind: step.PartText, Text: text}}}
		if i == 999 {
			s.Role = step.RoleUser
		}
		if err := d.Append(journal.Record{Kind: journal.KindStep, Step: &s}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkIdleMemory is the anonymous memory of a runner that waits for its
// model.
func BenchmarkIdleMemory(b *testing.B) {
	asked, answer := make(chan struct{}, 1), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-answer
	}))
	defer server.Close()
	defer close(answer)
	t := newBench(b, server.URL+"/v1", nil)
	total := 0
	for b.Loop() {
		c := t.command(b)
		if err := c.Start(); err != nil {
			b.Fatal(err)
		}
		<-asked
		time.Sleep(200 * time.Millisecond) // let it come to rest
		total += memory(b, c.Process.Pid, "smaps_rollup", "Anonymous:")
		_ = c.Process.Kill()
		_ = c.Wait()
	}
	b.ReportMetric(float64(total)/float64(b.N)/1024, "MiB")
}

// memory is what the kernel says in KiB of a process, in one line of a file.
func memory(b *testing.B, pid int, file, line string) int {
	b.Helper()
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/" + file)
	if err != nil {
		b.Skip(err)
	}
	for l := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(l, line); ok {
			kib, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				b.Fatal(err)
			}
			return kib
		}
	}
	b.Fatalf("no %s in %s", line, file)
	return 0
}
