package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/requests"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
)

const (
	deployForm = `{"type":"object","properties":{"env":{"type":"string","enum":["staging","live"],"description":"Where\u001b[2J to"},` +
		`"replicas":{"type":"integer","minimum":1,"default":2},"dry":{"type":"boolean"},"ratio":{"type":"number"},"note":{"type":"string"},"tags":{"type":"array","items":{"type":"string"}}},` +
		`"required":["env","dry"],"additionalProperties":false}`
	numberForm = `{"type":"integer","enum":[10,20,30]}`
	nestedForm = `{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"integer"}]}}}`
)

// asksWith is a Run whose only question has a schema.
func asksWith(schema string) *v1alpha1.Run {
	run := runWithRequests()
	run.Status.Progress.Pending = run.Status.Progress.Pending[1:2]
	run.Status.Progress.Pending[0].Schema = schema
	return run
}

func TestAnswersHaveTheTypesOfTheSchema(t *testing.T) {
	for name, tc := range map[string]struct {
		schema string
		args   []string
		want   string // the value, or "error: " and a part of the message
	}{
		"pairs":                              {deployForm, []string{"env=live", "dry=yes", "replicas=3", "note=3", "ratio=0.5"}, `{"dry":true,"env":"live","note":"3","ratio":0.5,"replicas":3}`},
		"a list as JSON":                     {deployForm, []string{"env=live", "dry=false", `tags=["a"]`}, `{"dry":false,"env":"live","tags":["a"]}`},
		"a value with an equals sign":        {deployForm, []string{"env=live", "dry=n", "note=a=b c"}, `{"dry":false,"env":"live","note":"a=b c"}`},
		"raw JSON":                           {deployForm, []string{`{"env":"live","dry":true}`}, `{"env":"live","dry":true}`},
		"raw JSON that does not fit":         {deployForm, []string{`{"env":"live"}`}, "error: `dry` is missing"},
		"a missing value":                    {deployForm, []string{"env=live"}, "error: `dry` is missing"},
		"a wrong choice":                     {deployForm, []string{"env=nowhere", "dry=yes"}, `error: env=nowhere: `},
		"a wrong number":                     {deployForm, []string{"env=live", "dry=yes", "replicas=many"}, "error: replicas=many: "},
		"a number below the minimum":         {deployForm, []string{"env=live", "dry=yes", "replicas=0"}, "error: replicas=0: "},
		"an unknown name":                    {deployForm, []string{"enw=live", "dry=yes"}, "error: no value enw. There are: env, replicas, dry, ratio, note, tags; did you mean env?"},
		"a name twice":                       {deployForm, []string{"env=live", "env=live"}, "error: env is given twice"},
		"a text among pairs":                 {deployForm, []string{"env=live", "please"}, `error: "please": write NAME=VALUE`},
		"a text for many fields":             {deployForm, []string{"live"}, "error: the value is not JSON"},
		"a number":                           {numberForm, []string{"20"}, "20"},
		"a number that is no choice":         {numberForm, []string{"25"}, "error: must be one of"},
		"a text that looks like a number":    {`{"type":"string"}`, []string{"3"}, `"3"`},
		"a quoted text":                      {`{"type":"string"}`, []string{`"3"`}, `"3"`},
		"the only field of an object":        {`{"type":"object","properties":{"env":{"enum":["a","b"]}}}`, []string{"b"}, `{"env":"b"}`},
		"a schema that is no form":           {nestedForm, []string{`{"a":1}`}, `{"a":1}`},
		"pairs for a schema that is no form": {nestedForm, []string{"a=1", "b=2"}, "error: write it in quotes"},
		"a schema that refers to itself":     {`{"allOf":[{"$ref":"#"}]}`, []string{"{}"}, "error: Request s2c1 cannot be answered: its schema, which the runner wrote, cannot be used: “the schema has a reference"},
		"a field that refers to the whole":   {`{"properties":{"a":{"items":{"$ref":"#"}}}}`, []string{"a=[]"}, "error: Request s2c1 cannot be answered"},
		"words without a schema":             {"", []string{"a=1", "b=2"}, "error: write it in quotes"},
		"a pair without a schema":            {"", []string{"a=1"}, "a=1"},
	} {
		s := newSession(t, asksWith(tc.schema))
		code := s.run(t, append([]string{"answer", "fix", "s2c1", "-y"}, tc.args...)...)
		made := decisionsOf(t, s)
		if part, refused := strings.CutPrefix(tc.want, "error: "); refused {
			if code != exit.Usage || len(made) > 0 || !strings.Contains(s.err.String(), part) {
				t.Errorf("%s: exit code %d, %d Decisions, want %q in: %s", name, code, len(made), part, s.text())
			}
		} else if code != exit.OK || len(made) != 1 || made[0].Spec.Value != tc.want {
			t.Errorf("%s: exit code %d, Decisions %+v, want %s: %s", name, code, made, tc.want, s.text())
		}
	}
}

func TestAFormIsAskedFieldByField(t *testing.T) {
	for name, tc := range map[string]struct {
		schema string
		typed  []string
		want   string
	}{
		"choices by number, defaults and what is left out": {deployForm, []string{"2", "", "y", "", "", ""}, `{"dry":true,"env":"live"}`},
		"choices by name":                          {deployForm, []string{"staging", "3", "no", "0.5", "two words", `["a"]`}, `{"dry":false,"env":"staging","note":"two words","ratio":0.5,"replicas":3,"tags":["a"]}`},
		"a value that does not fit is asked again": {deployForm, []string{"3", "nowhere", "1", "0", "many", "1", "maybe", "yes", "", "", "no list", ""}, `{"dry":true,"env":"staging","replicas":1}`},
		"raw JSON": {deployForm, []string{`{"env":"live","dry":false}`}, `{"env":"live","dry":false}`},
		"Enter at a required value answers later":             {deployForm, []string{"1", "", ""}, ""},
		"Enter takes a default even if the value is required": {`{"properties":{"n":{"type":"integer","default":2}},"required":["n"]}`, []string{""}, "{}"},
		"quotes of a text are a part of it":                   {`{"properties":{"note":{"type":"string"}}}`, []string{`"q"`}, `{"note":"\"q\""}`},
		"a number is the choice that it is shown beside":      {`{"enum":[3,2,1]}`, []string{"1"}, "3"},
		"a choice that looks like another number":             {`{"enum":["staging","1"]}`, []string{"1"}, `"staging"`},
		"a choice with a line end forges no other":            {`{"enum":["keep\n2  staging","production"]}`, []string{"2"}, `"production"`},
		"a choice of numbers by value":                        {numberForm, []string{"20"}, "20"},
		"a choice of numbers by its place":                    {numberForm, []string{"3"}, "30"},
	} {
		f, isForm := requests.FormOf(tc.schema)
		if !isForm {
			t.Fatalf("%s: no form", name)
		}
		var out strings.Builder
		typed := tc.typed
		got, err := requests.FormAsker{Out: &out, Read: func(question string) (string, error) {
			out.WriteString(question + "\n")
			if len(typed) == 0 {
				return "", errors.New("asked too often")
			}
			line := typed[0]
			typed = typed[1:]
			return line + "\n", nil
		}}.Ask(f)
		if err != nil || got != tc.want || len(typed) > 0 {
			t.Errorf("%s: %q, %v, %d lines are left, want %q:\n%s", name, got, err, len(typed), tc.want, out.String())
		}
		if strings.Contains(out.String(), "\n    | 2  staging") {
			t.Errorf("%s: a choice has a second line:\n%s", name, out.String())
		}
		if strings.Contains(out.String(), "\x1b") {
			t.Errorf("%s: control characters reach the terminal", name)
		}
		if name == "choices by name" {
			golden(t, "form.txt", out.String())
		}
	}
}

func TestOnlySchemasOfValuesAreForms(t *testing.T) {
	for schema, want := range map[string]bool{
		deployForm: true, numberForm: true, `{"enum":["a"]}`: true, `{"type":"boolean"}`: true,
		"": false, "[]": false, nestedForm: false, `{"type":"object"}`: false, `{"type":"array"}`: false, `{"properties":{}}`: false,
		`{"properties":{"a":{}},"oneOf":[{}]}`: false, `{"properties":{"a":{"$ref":"#/$defs/x"}}}`: false, `{"type":["string","null"]}`: false,
		`{"properties":{"a":{"items":{"$ref":"#"}}}}`: false,
	} {
		if _, got := requests.FormOf(schema); got != want {
			t.Errorf("%s: %t", schema, got)
		}
	}
}

func TestAnswerAsksAtTheTerminal(t *testing.T) {
	for name, tc := range map[string]struct {
		run   *v1alpha1.Run
		args  []string
		typed []string
		want  string
	}{
		"a form":               {asksWith(deployForm), []string{"answer", "fix"}, []string{"1\n", "\n", "n\n", "\n", "\n", "\n"}, `{"dry":false,"env":"staging"}`},
		"a form of a request":  {asksWith(numberForm), []string{"answer", "fix", "s2c1"}, []string{"1\n"}, "10"},
		"a text":               {asksWith(""), []string{"answer", "fix"}, []string{"The branch main.\n"}, "The branch main."},
		"JSON that is no form": {asksWith(nestedForm), []string{"answer", "fix"}, []string{"a\n", `{"a":1}` + "\n"}, `{"a":1}`},
		"later":                {asksWith(""), []string{"answer", "fix"}, []string{"\n"}, ""},
	} {
		s := newSession(t, tc.run)
		s.types(t, tc.typed...)
		code := s.run(t, tc.args...)
		made := decisionsOf(t, s)
		if code != exit.OK || len(made) > 1 || len(made) == 0 && tc.want != "" || len(made) == 1 && (made[0].Spec.Value != tc.want || made[0].Spec.By != "ann") {
			t.Errorf("%s: exit code %d, Decisions %+v, want %q: %s", name, code, made, tc.want, s.text())
		}
		if strings.Contains(name, "a form") && strings.Contains(s.err.String(), "Schema of the value") {
			t.Errorf("%s: the schema is shown beside the form: %s", name, s.err.String())
		}
	}
}

// What a form is as a whole is a rule too.
func TestAFormThatDoesNotFitAsAWholeIsAskedAgain(t *testing.T) {
	const atLeastOne = `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"minProperties":1,"additionalProperties":false}`
	for name, tc := range map[string]struct {
		schema string
		typed  []string
		want   string
	}{
		"JSON with an unknown field":    {atLeastOne, []string{`{"c":1}` + "\n", "\n", "x\n"}, `{"b":"x"}`},
		"JSON without a required field": {deployForm, []string{`{"env":"live"}` + "\n", `{"env":"live","dry":true}` + "\n"}, `{"env":"live","dry":true}`},
		"too many values":               {`{"properties":{"a":{},"b":{}},"maxProperties":1}`, []string{"1\n", "2\n", "1\n", "\n"}, `{"a":1}`},
		"nothing answers later":         {atLeastOne, []string{"\n", "\n"}, ""},
	} {
		answer, wait := newSession(t, asksWith(tc.schema)), askAt(t, asksWith(tc.schema), tc.typed...)
		answer.types(t, tc.typed...)
		if code := answer.run(t, "answer", "fix"); code != exit.OK {
			t.Errorf("%s: exit code %d: %s", name, code, answer.text())
		}
		for _, s := range []*session{answer, wait} {
			made := decisionsOf(t, s)
			if len(made) == 0 && tc.want != "" || len(made) > 0 && made[0].Spec.Value != tc.want || !strings.Contains(s.err.String(), "does not fit what s2c1 asks for") {
				t.Errorf("%s: Decisions %+v, want %q: %s", name, made, tc.want, s.text())
			}
		}
	}
}

func TestAnApprovalWithAFormAsksForItsValue(t *testing.T) {
	run := runWithRequests()
	run.Status.Progress.Pending = run.Status.Progress.Pending[:1]
	run.Status.Progress.Pending[0].Schema = `{"type":"object","properties":{"env":{"enum":["a","b"]}},"required":["env"]}`
	s := newSession(t, run.DeepCopy())
	s.types(t, "2\n", "y\n")
	if code := s.run(t, "approve", "fix"); code != exit.OK || len(decisionsOf(t, s)) != 1 || decisionsOf(t, s)[0].Spec.Value != `{"env":"b"}` {
		t.Errorf("exit code %d, Decisions %+v: %s", code, decisionsOf(t, s), s.text())
	}
	s = newSession(t, run.DeepCopy())
	s.types(t, "2\n", "n\n")
	if code := s.run(t, "approve", "fix"); code != exit.OK || len(decisionsOf(t, s)) > 0 {
		t.Errorf("exit code %d, Decisions %+v of a user who did not agree: %s", code, decisionsOf(t, s), s.text())
	}
	s = askAt(t, run, "y\n", "1\n")
	if made := decisionsOf(t, s); len(made) != 1 || made[0].Spec.Value != `{"env":"a"}` || made[0].Spec.Digest != callDigest {
		t.Errorf("Decisions %+v: %s", made, s.text())
	}
	s = askAt(t, run, "n\n")
	if made := decisionsOf(t, s); len(made) != 1 || made[0].Spec.Type != v1alpha1.DecisionDeny || made[0].Spec.Value != "" {
		t.Errorf("Decisions %+v: %s", made, s.text())
	}
}

func TestWaitAsksAFormFieldByField(t *testing.T) {
	s := askAt(t, asksWith(deployForm), "2\n", "\n", "y\n", "\n", "\n", "\n")
	if made := decisionsOf(t, s); len(made) != 1 || made[0].Spec.Value != `{"dry":true,"env":"live"}` {
		t.Errorf("Decisions %+v: %s", made, s.text())
	}
	s = askAt(t, asksWith(deployForm), "\n")
	if made := decisionsOf(t, s); len(made) > 0 || !strings.Contains(s.err.String(), "To decide later: kubectl deckhand answer fix s2c1") {
		t.Errorf("Decisions %+v: %s", made, s.text())
	}
}

// askAt lets a user who watches a Run answer what it asks.
func askAt(t *testing.T, run *v1alpha1.Run, answers ...string) *session {
	t.Helper()
	s := newSession(t, run.DeepCopy())
	s.types(t, answers...)
	asker := s.newAsker(podReaderOf(s.Factory, s.client), &terminal.Console{})
	for range 2 { // a request waits for the second look
		if err := asker.ask(t.Context(), run); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestAnApprovalTakesValuesAsAnAnswerDoes(t *testing.T) {
	run := runWithRequests()
	run.Status.Progress.Pending = run.Status.Progress.Pending[:1]
	run.Status.Progress.Pending[0].Schema = `{"type":"object","properties":{"at":{"type":"string"},"n":{"type":"integer"}}}`
	for line, want := range map[string]string{
		"approve fix " + callID + " at=now n=2 --yes":     `{"at":"now","n":2}`,
		"approve fix " + callID + " --value at=now --yes": `{"at":"now"}`,
	} {
		s := newSession(t, run.DeepCopy())
		if code := s.run(t, strings.Fields(line)...); code != exit.OK || len(decisionsOf(t, s)) != 1 || decisionsOf(t, s)[0].Spec.Value != want {
			t.Errorf("%s: exit code %d, Decisions %+v: %s", line, code, decisionsOf(t, s), s.text())
		}
	}
	for line, want := range map[string]string{
		"approve fix " + callID + " now later --yes":             `"now" is no value: write NAME=VALUE`,
		"approve fix " + callID + " at=now --value at=now --yes": "the value is given twice, with --value and as at=now",
		"approve fix " + callID + " att=now --yes":               "the request asks for no value att",
	} {
		s := newSession(t, run.DeepCopy())
		if code := s.run(t, strings.Fields(line)...); code != exit.Usage || len(decisionsOf(t, s)) != 0 || !strings.Contains(s.err.String(), want) {
			t.Errorf("%s: exit code %d, want %q: %s", line, code, want, s.text())
		}
	}
}
