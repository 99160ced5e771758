package files

import (
	"fmt"
	"testing"
)

func TestTheNoteSaysHowManyFilesAreLeftOut(t *testing.T) {
	for n, want := range map[int]string{
		0:              "found",
		1:              "found\n[1 file left out: the policy does not let this agent read it]",
		2:              "found\n[2 files left out: the policy does not let this agent read them]",
		maxAnswers:     "found\n[10000 files left out: the policy does not let this agent read them]",
		maxAnswers + 1: "found\n[more than 10000 files left out: the policy does not let this agent read them]",
		12_000:         "found\n[more than 10000 files left out: the policy does not let this agent read them]",
	} {
		f := filter{left: map[string]bool{}}
		for i := range n {
			f.leaveOut(fmt.Sprint(i))
			f.leaveOut(fmt.Sprint(i))
		}
		if got := f.note("found"); got != want {
			t.Errorf("%d files left out: %q, want %q", n, got, want)
		}
	}
}
