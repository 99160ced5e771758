package openai_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/model/wiretest"
	"github.com/deckhand-dev/deckhand/runner/model"
)

// endless is a network whose answer never ends by itself: start, and then 2 GiB
// of a piece, unless nobody reads.
func endless(start, piece string) wiretest.RoundTrip {
	return func(*http.Request) (*http.Response, error) {
		reader, writer := io.Pipe()
		go func() { writer.CloseWithError(pour(writer, start, piece)) }()
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: reader}, nil
	}
}

func pour(w io.Writer, start, piece string) error {
	if _, err := io.WriteString(w, start); err != nil {
		return err
	}
	block := bytes.Repeat([]byte(piece), max(64<<10/len(piece), 1))
	for range 2 << 30 / len(block) {
		if _, err := w.Write(block); err != nil {
			return err
		}
	}
	return nil
}

// allocated is how many bytes f allocates in all, freed or not.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Whatever an endpoint sends, and however long, an answer costs less memory in
// all than a small part of it.
func TestAnAnswerWithoutEndIsBounded(t *testing.T) {
	const most = 384 << 20
	chunk := func(inner string) string { return `data: {"choices":[` + inner + `]}` + "\n\n" }
	// A chunk of 3 MB says very many small things.
	many := func(before, piece, after string) wiretest.RoundTrip {
		return wiretest.Answering(http.StatusOK, "text/event-stream", chunk(before+strings.Repeat(piece+",", 3<<20/(len(piece)+1))+piece+after))
	}
	notAModel := func(err error) bool {
		_, ok := errors.AsType[*model.NotAModelError](err)
		return ok && strings.Contains(err.Error(), "MiB")
	}
	cases := map[string]struct {
		network wiretest.RoundTrip
		want    func(error) bool
	}{
		"one line":             {endless(`data: {"choices":[{"delta":{"content":"`, "aaaaaaaa"), notAModel},
		"comments":             {endless("", ": OPENROUTER PROCESSING\n\n"), notAModel},
		"empty lines":          {endless("data: {}\n", "\n"), notAModel},
		"events without data":  {endless("", "data:\n"), notAModel},
		"spaces":               {endless("", "        "), notAModel},
		"chunks":               {endless("", chunk(`{"delta":{"content":"`+strings.Repeat("a", 4000)+`"}}`)), notAModel},
		"thinking and text":    {endless("", chunk(`{"delta":{"content":"a"}}`)+chunk(`{"delta":{"reasoning":"b"}}`)), model.Transient},
		"a mark that never is": {endless("", chunk(`{"delta":{"content":"<think>`+strings.Repeat("<", 4000)+`"}}`)), notAModel},
		"one document":         {endless(`{"choices":[{"message":{"content":"`, "aaaaaaaa"), notAModel},
		"very many choices":    {many("", "{}", ""), model.Transient},
		"very many calls":      {many(`{"delta":{"tool_calls":[`, "{}", "]}}"), model.Transient},
		"very many details":    {many(`{"delta":{"reasoning_details":[`, `{"type":1},{"type":2}`, "]}}"), model.Transient},
		"very many parts":      {many(`{"delta":{"content":[`, `{"text":"a"}`, "]}}"), model.Transient},
		"details without end":  {endless("", chunk(`{"delta":{"reasoning_details":[{"type":"a"},{"type":"b"}]}}`)), model.Transient},
		"a name without end":   {endless("", chunk(`{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"b"}},{"index":1,"id":"c","function":{"name":"`+strings.Repeat("d", 4000)+`"}}]}}`)), notAModel},
		"brackets":             {endless("", "data: "+strings.Repeat("[", 1<<20)+"\n"), notAModel},
		"deep parts":           {wiretest.Answering(http.StatusOK, "text/event-stream", chunk(`{"delta":{"content":`+strings.Repeat(`[{"thinking":`, 4000)+strings.Repeat(" ", 1<<20)+"1"+strings.Repeat("}]", 4000)+`}}`)), model.Transient},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var err error
			used := allocated(func() { _, err = collect(t, tc.network) })
			if !tc.want(err) {
				t.Errorf("got %v", err)
			}
			if used > most {
				t.Errorf("allocated %d MiB", used>>20)
			}
		})
	}
}
