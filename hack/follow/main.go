// Command follow prints the events of a Run for people. It reads the log of the
// Run's pod on standard input (kubectl logs -f POD), and prints what the model
// wrote, the tools that it called and what they returned.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/step"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var e step.Event
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.V == 0 {
			fmt.Println(lines.Text()) // the runner's own log
			continue
		}
		show(e)
	}
}

// show prints what a step brought; its deltas would say it twice.
func show(e step.Event) {
	var finished events.StepFinished
	switch e.Type { //nolint:exhaustive // the others are for programs
	case step.EventTextDelta, step.EventThinkingDelta, step.EventCallOutput, step.EventStepStarted, step.EventCallFinished:
		return
	case step.EventStepFinished:
		if json.Unmarshal(e.Data, &finished) != nil {
			return
		}
		if finished.Step.Role == step.RoleTool {
			fmt.Println(indent(finished.Step.Text()))
			return
		}
	}
	fmt.Printf("%s  %s\n", e.T.Format("15:04:05.000"), e.Message)
}

func indent(text string) string {
	return "              | " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n              | ")
}
