package transcript_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/cli/transcript"
	"github.com/deckhand-dev/deckhand/runner/events"
)

// facts are the entries of a log, each on a line.
type facts []string

func (f *facts) Add(e transcript.Entry) {
	*f = append(*f, fmt.Sprintf("%d %T %+v", e.Attempt, e.Fact, e.Fact))
}

func read(t *testing.T, o transcript.Options, lines ...string) []string {
	t.Helper()
	var got facts
	o.Sink = &got
	r := transcript.NewReader(o)
	if _, err := r.Write([]byte(strings.Join(lines, "\n") + "\n")); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestFactsOfALog(t *testing.T) {
	for name, tc := range map[string]struct{ log, want []string }{
		"deltas are not repeated by their step": {
			[]string{
				`{"v":1,"n":1,"attempt":1,"type":"text.delta","data":{"step":1,"text":"Hi"}}`,
				`{"v":1,"n":2,"attempt":1,"type":"step.finished","data":{"step":{"role":"assistant","parts":[{"kind":"text","text":"Hi"}]}}}`,
			},
			[]string{"1 transcript.Text {Turn: Text:Hi}", "1 transcript.Answer"},
		},
		"texts of a turn have its id": {
			[]string{
				`{"v":1,"n":1,"attempt":1,"type":"step.started","data":{"id":"s14","step":14,"kind":"Model"}}`,
				`{"v":1,"n":2,"attempt":1,"type":"thinking.delta","data":{"step":14,"text":"Hm"}}`,
				`{"v":1,"n":3,"attempt":1,"type":"text.delta","data":{"step":14,"text":"Hi"}}`,
				`{"v":1,"n":4,"attempt":1,"type":"step.finished","data":{"step":{"seq":14,"role":"assistant"}}}`,
			},
			[]string{"1 transcript.Thinking {Turn:s14 Text:Hm}", "1 transcript.Text {Turn:s14 Text:Hi}", "1 transcript.Answer"},
		},
		"the number of a runner of before is no id": {
			[]string{
				`{"v":1,"n":1,"attempt":1,"type":"step.started","data":{"step":6,"kind":"Model"}}`,
				`{"v":1,"n":2,"attempt":1,"type":"text.delta","data":{"step":6,"text":"Hi"}}`,
			},
			[]string{"1 transcript.Text {Turn: Text:Hi}"},
		},
		"texts of which there are no deltas have the id of their step": {
			[]string{`{"v":1,"n":1,"attempt":1,"scope":{"depth":1,"parent":"s7c1"},"type":"step.finished","data":{"step":{"seq":4,"role":"assistant","parts":[{"kind":"text","text":"Hi"}]}}}`},
			[]string{"1 transcript.Text {Turn:s7c1.s4 Text:Hi}", "1 transcript.Answer"},
		},
		"a call that was denied comes before its result": {
			[]string{
				`{"v":1,"n":1,"attempt":1,"type":"step.finished","data":{"step":{"role":"assistant","calls":[{"id":"s1c1","name":"Read","args":{}}]}}}`,
				`{"v":1,"n":2,"attempt":1,"type":"call.denied","data":{"id":"s1c1","name":"Read","by":"Policy"}}`,
				`{"v":1,"n":3,"attempt":1,"type":"step.finished","data":{"step":{"role":"tool","callID":"s1c1","name":"Read"}}}`,
			},
			[]string{"1 transcript.Answer", "1 events.CallDenied", "1 transcript.Call", "1 transcript.Result"},
		},
		"the beginning of another attempt is missing": {
			[]string{
				`{"v":1,"n":1,"attempt":1,"type":"reset","data":{"step":1}}`,
				`{"v":1,"n":7,"attempt":2,"type":"reset","data":{"step":1}}`,
			},
			[]string{"1 events.Reset", "2 transcript.AttemptContinued", "2 transcript.Gap {Announced:false}", "2 events.Reset"},
		},
		"what is no event": {
			[]string{`{"level":"WARN","msg":"slow","err":"disk"}`, `{"level":"INFO","msg":"fine"}`, "panic"},
			[]string{"0 transcript.Warning {Text:slow: disk}", "0 transcript.Note {Text:panic}"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := read(t, transcript.Options{}, tc.log...)
			for i := range min(len(got), len(tc.want)) { // the wanted facts may have fewer details
				got[i] = got[i][:min(len(got[i]), len(tc.want[i]))]
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestARequestOfALogIsChecked(t *testing.T) {
	check := func(p events.Pending) string { return "not " + p.ID }
	got := read(t, transcript.Options{Check: check}, `{"v":1,"n":1,"attempt":1,"type":"pending","data":{"id":"s1c1","kind":"Question"}}`)
	if len(got) != 1 || !strings.Contains(got[0], "Doubt:not s1c1") {
		t.Errorf("read %q", got)
	}
}

func TestWarningsBeforeTheBeginningFollowIt(t *testing.T) {
	const (
		started = `{"v":1,"n":1,"attempt":1,"type":"run.started","data":{"agent":"a"}}` + "\n"
		warning = `{"level":"WARN","msg":"slow"}` + "\n"
	)
	for name, tc := range map[string]struct {
		do   func(r *transcript.Reader, write func(string))
		want string
	}{
		"until the attempt begins": {func(_ *transcript.Reader, write func(string)) { write(warning + started + warning) }, "RunStarted Warning Warning"},
		"until the log ends":       {func(r *transcript.Reader, write func(string)) { write(warning); r.EndLog() }, "Warning"},
		"of each pod":              {func(r *transcript.Reader, write func(string)) { write(started); r.EndLog(); write(warning) }, "RunStarted"},
		"an error does not wait":   {func(_ *transcript.Reader, write func(string)) { write(warning + `{"level":"ERROR","msg":"no"}` + "\n") }, "Warning Warning"},
		"nor does a crash":         {func(_ *transcript.Reader, write func(string)) { write(warning + "panic\n") }, "Warning Note"},
		"many do not":              {func(_ *transcript.Reader, write func(string)) { write(strings.Repeat(warning, 21)) }, strings.TrimSpace(strings.Repeat("Warning ", 21))},
		"once if they are read again": {func(r *transcript.Reader, write func(string)) {
			write(warning)
			r.Reconnect()
			write(warning + started)
		}, "RunStarted Warning"},
		"not those that are for audit": {func(_ *transcript.Reader, write func(string)) {
			write(started + `{"level":"WARN","msg":"reached","audit":"egress"}` + "\n")
		}, "RunStarted"},
	} {
		t.Run(name, func(t *testing.T) {
			var got facts
			r := transcript.NewReader(transcript.Options{Sink: &got})
			tc.do(r, func(log string) { _, _ = r.Write([]byte(log)) }) // it returns no error
			var types []string
			for _, fact := range got {
				_, name, _ := strings.Cut(strings.Fields(fact)[1], ".")
				types = append(types, name)
			}
			if diff := cmp.Diff(tc.want, strings.Join(types, " ")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
