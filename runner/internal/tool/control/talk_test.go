package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/shared/schema"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

const report = `{"type":"object","required":["summary"],"additionalProperties":false,
	"properties":{"summary":{"type":"string"},"files":{"type":"array","items":{"type":"string"}}}}`

func finishWith(t *testing.T, output string) tool.Tool {
	t.Helper()
	finish, err := FinishWith(json.RawMessage(output))
	if err != nil {
		t.Fatalf("FinishWith: %v", err)
	}
	return finish
}

func TestCalls(t *testing.T) {
	cases := map[string]struct {
		tool tool.Tool
		args string
		want tool.Result
	}{
		"think answers nothing new":    {Think(), `{"thought":"hm"}`, tool.Result{Text: "OK"}},
		"finish carries the text":      {Finish(), `{"text":"done"}`, tool.Result{Text: "done"}},
		"reject carries the reason":    {Reject(), `{"reason":"no"}`, tool.Result{Text: "no"}},
		"finish needs its text":        {Finish(), `{}`, tool.Fail("Invalid arguments for Finish: `text` is missing; there are: text (required).")},
		"finish commits its arguments": {finishWith(t, report), ` { "summary" : "s" } `, tool.Result{Text: `{"summary":"s"}`, Output: json.RawMessage(`{"summary":"s"}`)}},
		"an output keeps its numbers as they are": {
			finishWith(t, `{"type":"object"}`), `{"n":12345678901234567890,"x":1.50}`,
			tool.Result{Text: `{"n":12345678901234567890,"x":1.50}`, Output: json.RawMessage(`{"n":12345678901234567890,"x":1.50}`)},
		},
		"an output that does not fit is refused": {
			finishWith(t, report), `{"summary":"s","files":["a",1]}`,
			tool.Fail("Invalid arguments for Finish: `files[1]` must be a string; got an integer."),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := tc.tool.Call(t.Context(), tool.Call{Args: json.RawMessage(tc.args)})
			if err != nil {
				t.Fatalf("Call: %v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Call() -want +got:\n%s", diff)
			}
		})
	}
}

func TestEndingToolsEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		tool tool.Tool
		ends bool
	}{
		"Think":       {Think(), false},
		"Finish":      {Finish(), true},
		"Finish with": {finishWith(t, report), true},
		"Reject":      {Reject(), true},
	} {
		spec := tc.tool.Spec
		if spec.Internal.Facts().Ends != tc.ends || spec.Name != strings.Fields(name)[0] || spec.Description == "" {
			t.Errorf("%s: Spec() = %+v", name, spec)
		}
	}
}

func TestTheOutputSchemaIsTheInput(t *testing.T) {
	if diff := cmp.Diff(report, string(finishWith(t, report).Input)); diff != "" {
		t.Errorf("Input -want +got:\n%s", diff)
	}
	_, err := FinishWith(json.RawMessage(`{"type":"object","oneOf":[]}`))
	var wrong *schema.Error
	if !errors.As(err, &wrong) || wrong.Path != "oneOf" {
		t.Errorf("FinishWith: error %v, want one at oneOf", err)
	}
}

// Nobody else checks an output, so that a large one is validated too.
func TestFinishValidatesLargeOutputs(t *testing.T) {
	countries := make([]string, 250)
	for i := range countries {
		countries[i] = fmt.Sprintf("%q", fmt.Sprintf("C%d", i))
	}
	finish, err := FinishWith(json.RawMessage(`{"type":"object","properties":{"rows":{"type":"array","items":{"type":"object","properties":{"c":{"type":"string","enum":[` +
		strings.Join(countries, ",") + `]}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		rows int
		last string
		want string // of the error; empty: none
	}{
		{400, "C7", ""},
		{400, "ZZ", "`rows[400].c` must be one of "},
		{60_000, "C7", "they cannot be validated: validating the value takes too long"},
		{60_000, "ZZ", "they cannot be validated: validating the value takes too long"},
	} {
		value := `{"rows":[` + strings.Repeat(`{"c":"C249"},`, tc.rows) + `{"c":"` + tc.last + `"}]}`
		got, err := finish.Call(t.Context(), tool.Call{Args: json.RawMessage(value), Emit: func(string) {}})
		switch {
		case err != nil:
			t.Fatal(err)
		case tc.want == "" && got.Error != nil, tc.want != "" && (got.Error == nil || !strings.Contains(got.Error.Message, tc.want)):
			t.Errorf("%d rows and %s: %+v, want %q", tc.rows, tc.last, got.Error, tc.want)
		}
	}
}
