package task

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A newer runner works with an older operator, which sends numbers of turns.
func TestRefusalsOfAnOlderOperatorAreRead(t *testing.T) {
	var got Refused
	before := `{"connections":2,"hosts":[{"host":"a.example","port":443,"count":2,"firstStep":6}],"toolCalls":1,"tools":[{"name":"Shell","by":"Policy","count":1,"firstStep":7}]}`
	if err := json.Unmarshal([]byte(before), &got); err != nil {
		t.Fatal(err)
	}
	want := Refused{
		Connections: 2, Hosts: []RefusedHost{{Host: "a.example", Port: 443, Count: 2}},
		ToolCalls: 1, Tools: []DeniedTool{{Name: "Shell", By: DeniedByPolicy, Count: 1}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, unknown := range []string{`{"hosts":[{"host":"a","port":1,"until":3}]}`, `{"tools":[{"name":"a","until":3}]}`} {
		if err := json.Unmarshal([]byte(unknown), &Refused{}); err == nil || !strings.Contains(err.Error(), `"until"`) {
			t.Errorf("%s is read with %v, and not refused", unknown, err)
		}
	}
}

func TestNoPartOfAnIDIsShown(t *testing.T) {
	longest := strings.Repeat("s", MaxStepID)
	for id, want := range map[string]string{"": "", "s14c1": "s14c1", longest: longest, longest + "1": ""} {
		if got := ShownID(id); got != want {
			t.Errorf("ShownID(%s) = %q, want %q", id, got, want)
		}
	}
}
