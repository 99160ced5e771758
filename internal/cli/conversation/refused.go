package conversation

import (
	"fmt"
	"strings"

	"github.com/deckhand-dev/deckhand/internal/cli/transcript"
)

// refusedShown is how many refused hosts and denied tools the summary names.
const refusedShown = 5

// refusedHosts prints the hosts that commands were refused.
func (p *Printer) refusedHosts(names []string) {
	if len(names) > 0 {
		p.warn("Commands were refused connections to " + firstNames(names))
	}
}

// deniedTools prints the tools whose calls were denied.
func (p *Printer) deniedTools(tools []transcript.DeniedTool) {
	if len(tools) == 0 {
		return
	}
	var names []string
	for _, tool := range tools {
		name := tool.Name
		if tool.Calls > 1 {
			name = fmt.Sprintf("%s (%d)", tool.Name, tool.Calls)
		}
		names = append(names, name)
	}
	p.warn("Tool calls were denied: " + firstNames(names))
}

func firstNames(names []string) string {
	text := strings.Join(names[:min(len(names), refusedShown)], ", ")
	if more := len(names) - refusedShown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
