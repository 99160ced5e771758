package conversation_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/cli/conversation"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// The log delegation.jsonl was written by runner-local, types.jsonl has an event of each
// type, faults.jsonl has what may be wrong with a log, and once.jsonl what a log has twice.
func TestConversationOfALog(t *testing.T) {
	cases := map[string]struct {
		log     string
		options conversation.Options
	}{
		"delegation":       {"delegation", conversation.Options{}},
		"delegation-color": {"delegation", conversation.Options{Color: true}},
		"denied":           {"denied", conversation.Options{}},
		"denied-asked":     {"denied", conversation.Options{NamesRequests: true}},
		"once":             {"once", conversation.Options{}},
		"types":            {"types", conversation.Options{}},
		"faults":           {"faults", conversation.Options{}},
		"faults-prefix":    {"faults", conversation.Options{Prefix: "[build] ", Width: 60}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			golden(t, name+".txt", conversationOf(t, tc.options, testdata(t, tc.log+".jsonl")))
		})
	}
}

// A custom runner may log any number.
func TestTheDepthOfASessionIsBounded(t *testing.T) {
	for depth, want := range map[string]string{"-1": "● hi\n", "-9223372036854775808": "● hi\n", "9223372036854775807": strings.Repeat(" ", 16) + "● hi\n"} {
		event := fmt.Sprintf(`{"v":1,"n":1,"t":"2030-01-01T12:00:00Z","run":"fix","attempt":1,"scope":{"session":"a","depth":%s},"type":"text.delta","data":{"step":1,"text":"hi"}}`+"\n", depth)
		if got := conversationOf(t, conversation.Options{}, []byte(event)); got != want {
			t.Errorf("depth %s: %q, want %q", depth, got, want)
		}
	}
}

func TestConversationDoesNotDependOnHowTheLogIsCutIntoPieces(t *testing.T) {
	log := testdata(t, "faults.jsonl")
	want := conversationOf(t, conversation.Options{}, log)
	for _, size := range []int{1, 7, 1000} {
		var pieces [][]byte
		for rest := log; len(rest) > 0; {
			n := min(size, len(rest))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		if diff := cmp.Diff(want, conversationOf(t, conversation.Options{}, pieces...)); diff != "" {
			t.Errorf("in pieces of %d bytes (-whole +pieces):\n%s", size, diff)
		}
	}
}

func TestTextIsPrintedAtOnce(t *testing.T) {
	var out bytes.Buffer
	p := conversation.New(conversation.Options{Out: &out})
	write(t, p, `{"v":1,"n":1,"attempt":1,"type":"text.delta","data":{"step":1,"text":"Let"}}`+"\n")
	if got := out.String(); got != "● Let" {
		t.Errorf("printed %q", got)
	}
	write(t, p, `{"v":1,"n":2,"attempt":1,"type":"text.delta","data":{"step":1,"text":" me"}}`+"\n")
	if got := out.String(); got != "● Let me" {
		t.Errorf("printed %q", got)
	}
}

func TestALogThatIsReadAgainIsNotPrintedAgain(t *testing.T) {
	log := testdata(t, "delegation.jsonl")
	want := conversationOf(t, conversation.Options{}, log)
	var out bytes.Buffer
	p := conversation.New(conversation.Options{Out: &out})
	write(t, p, string(log[:len(log)/2])) // in the middle of a line
	p.Reconnect()
	write(t, p, string(log))
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-once +reconnected:\n%s", diff)
	}
}

func TestJSONPassesEachLineOnce(t *testing.T) {
	log := testdata(t, "delegation.jsonl")
	got := conversationOf(t, conversation.Options{JSON: true}, log, log)
	if diff := cmp.Diff(string(log), got); diff != "" {
		t.Errorf("-log +printed:\n%s", diff)
	}
}

// With log: Steps the log has no deltas.
func TestALogWithoutDeltasHasTheSameConversation(t *testing.T) {
	log := testdata(t, "delegation.jsonl")
	var steps []byte
	number, n := regexp.MustCompile(`"n":[0-9]+`), 0
	for line := range bytes.Lines(log) {
		if !bytes.Contains(line, []byte(`.delta"`)) {
			n++
			steps = append(steps, number.ReplaceAll(line, fmt.Appendf(nil, `"n":%d`, n))...)
		}
	}
	if diff := cmp.Diff(conversationOf(t, conversation.Options{}, log), conversationOf(t, conversation.Options{}, steps)); diff != "" {
		t.Errorf("-Full +Steps:\n%s", diff)
	}
}

func TestMissingEventsAreReportedWhereTheyAreMissing(t *testing.T) {
	lines := bytes.SplitAfter(testdata(t, "delegation.jsonl"), []byte("\n"))
	const warning = "! Events are missing here"
	for name, tc := range map[string]struct {
		log  [][]byte
		want int
	}{
		"a whole log":                 {lines, 0},
		"the beginning":               {lines[1:], 1},
		"the middle":                  {slices.Concat(lines[:4], lines[6:]), 1},
		"lines that were read before": {slices.Concat(lines[:6], lines[4:]), 0},
	} {
		got := conversationOf(t, conversation.Options{}, tc.log...)
		if n := strings.Count(got, warning); n != tc.want {
			t.Errorf("%s: said %d times, want %d:\n%s", name, n, tc.want, got)
		}
	}
}

func TestALineWithoutEndIsNotKept(t *testing.T) {
	var out bytes.Buffer
	p := conversation.New(conversation.Options{Out: &out})
	piece := strings.Repeat("x", 1<<20)
	for range 40 {
		write(t, p, piece)
	}
	write(t, p, "the end\nThe next line\n")
	if got := out.String(); got != "! A line of the log is longer than 16 MiB and is left out.\n· The next line\n" {
		t.Errorf("printed %.200q", got)
	}
}

func TestNoControlCharacterOfALogReachesTheTerminal(t *testing.T) {
	got := conversationOf(t, conversation.Options{}, testdata(t, "faults.jsonl"))
	if i := strings.IndexAny(got, "\x1b\x07\r\u202e"); i >= 0 {
		t.Errorf("printed %q", got[max(0, i-20):])
	}
}

func TestErrorsOfTheWriterAreReturned(t *testing.T) {
	closed := errors.New("closed")
	p := conversation.New(conversation.Options{Out: failingWriter{closed}})
	if _, err := p.Write(testdata(t, "delegation.jsonl")); !errors.Is(err, closed) {
		t.Errorf("Write returned %v", err)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

func BenchmarkWrite(b *testing.B) {
	log, err := os.ReadFile("testdata/delegation.jsonl")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(log)))
	for b.Loop() {
		if _, err := conversation.New(conversation.Options{Out: io.Discard}).Write(log); err != nil {
			b.Fatal(err)
		}
	}
}

func conversationOf(t *testing.T, o conversation.Options, log ...[]byte) string {
	t.Helper()
	var out bytes.Buffer
	o.Out = &out
	p := conversation.New(o)
	for _, piece := range log {
		write(t, p, string(piece))
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func write(t *testing.T, p *conversation.Printer, log string) {
	t.Helper()
	if _, err := p.Write([]byte(log)); err != nil {
		t.Fatal(err)
	}
}

func testdata(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(filepath.Join("testdata", name), []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(testdata(t, name)), got); diff != "" {
		t.Errorf("%s (-want +got), -update rewrites it:\n%s", name, diff)
	}
}

// The result of another agent is not printed at the end of the Run.
func TestTheResultOfAnotherAgentIsPrintedWhereItEnds(t *testing.T) {
	got := conversationOf(t, conversation.Options{}, []byte(`{"v":1,"n":1,"attempt":1,"scope":{"depth":1,"parent":"s1c1"},"type":"call.started","data":{"id":"s1c1.s1c1","name":"Finish","args":{"text":"Keep it"}}}
{"v":1,"n":2,"attempt":1,"scope":{"depth":1,"parent":"s1c1"},"type":"step.finished","data":{"step":{"role":"tool","callID":"s1c1.s1c1","name":"Finish","parts":[{"kind":"text","text":"Keep it"}]}}}
`))
	if want := "  → s1c1.s1c1 Finish {\"text\":\"Keep it\"}\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
}

// Nobody is asked about a child Run, so that its event is printed whole.
func TestACancelledDelegationIsPrintedWhole(t *testing.T) {
	got := conversationOf(t, conversation.Options{NamesRequests: true}, []byte(`{"v":1,"n":1,"attempt":1,"type":"pending","message":"The call was cancelled","data":{"id":"s1c1","kind":"Delegation","agent":"critic","cancelled":true,"askedAt":""}}
`))
	if !strings.HasPrefix(got, "? The call was cancelled\n") {
		t.Errorf("printed %q", got)
	}
}
