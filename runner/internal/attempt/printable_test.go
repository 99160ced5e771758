package attempt

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Whatever text a report has, a terminal does not act on it.
func TestAReportHasNoControlCharacters(t *testing.T) {
	const hostile = "a\x1b]0;b\x07\u009b2J\u202ec\x7f"
	var p task.Progress
	fill(reflect.ValueOf(&p).Elem(), hostile)
	p.Pending[0].Kind = task.PendingApproval
	before, _ := json.Marshal(p)
	texts(reflect.ValueOf(printableProgress(p)), "", func(field, text string) {
		switch {
		case notFree[field]:
		case redact.Printable(text) != text || strings.ContainsAny(text, "\x1b\x07"):
			t.Errorf("%s is %q", field, text)
		case !strings.HasPrefix(text, "a"):
			t.Errorf("%s lost its text: %q", field, text)
		}
	})
	if after, _ := json.Marshal(p); string(after) != string(before) {
		t.Error("the progress of the engine is changed")
	}
}

// notFree are the fields that the runner chooses from few words, numbers, times and digests.
var notFree = map[string]bool{
	".PodUID": true, ".Effects": true, ".State": true, ".AnsweredAt": true, ".ModelWait.Since": true, ".ModelWait.NextTryAt": true,
	".Step.ID": true, ".Step.Kind": true, ".Step.StartedAt": true, ".Usage.Cost": true, ".Usage.Duration": true, ".Recent.ID": true, ".Recent.Kind": true,
	".Pending.ID": true, ".Pending.Kind": true, ".Pending.Digest": true, ".Pending.DisplayDigest": true, ".Pending.AskedAt": true, ".Pending.ExpiresAt": true,
	".Pending.Approvers.Groups": true, ".Pending.Approvers.Users": true, ".Decided.Name": true, ".Decided.Request": true, ".Decided.Type": true, ".Decided.Digest": true,
	".Confinement.Process": true, ".Confinement.Files": true, ".Confinement.Network": true,
	".Refused.Hosts.Host": true, ".Refused.Hosts.Reason": true, ".Refused.Tools.Name": true, ".Refused.Tools.By": true, ".Refused.Hosts.FirstID": true, ".Refused.Tools.FirstID": true, // printable when they are added
	".Result.Reason": true, ".Result.Published.Commit": true,
}

// fill sets every string in v, and gives each list one element.
func fill(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), text)
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(field, text)
		}
	default: // numbers and booleans
	}
}

// texts calls see with every string in v and the names of the fields that lead to it.
func texts(v reflect.Value, path string, see func(field, text string)) {
	switch v.Kind() {
	case reflect.String:
		see(path, v.String())
	case reflect.Pointer:
		texts(v.Elem(), path, see)
	case reflect.Slice:
		for i := range v.Len() {
			texts(v.Index(i), path, see)
		}
	case reflect.Struct:
		for field, value := range v.Fields() {
			texts(value, path+"."+field.Name, see)
		}
	default: // numbers and booleans
	}
}

func TestJSONKeepsItsValueInAReport(t *testing.T) {
	const text = `{"a":"x` + "\u009b\u202e" + `y","b":"` + `\u001b` + `"}`
	got := printableJSON(text, 100)
	var was, is any
	if err := json.Unmarshal([]byte(text), &was); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(got), &is); err != nil || !reflect.DeepEqual(was, is) {
		t.Errorf("%s has the value %v, want %v: %v", got, is, was, err)
	}
	if short := printableJSON(text, len(text)); len(short) > len(text) || redact.Printable(short) != short {
		t.Errorf("within its bound it is %q", short)
	}
}
