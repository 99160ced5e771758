package conversation

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// refusedShown is how many refused hosts and denied tools the summary names.
const refusedShown = 5

func (p *Printer) hostRefused(e step.Event, d events.HostRefused) {
	p.refused[net.JoinHostPort(d.Host, strconv.Itoa(d.Port))] = true
	p.warn(cmp.Or(e.Message, "A command was refused a connection to "+d.Host))
}

// refusedHosts prints the hosts that commands were refused.
func (p *Printer) refusedHosts() {
	names := slices.Sorted(maps.Keys(p.refused))
	if len(names) == 0 {
		return
	}
	p.warn("Commands were refused connections to " + firstNames(names))
}

// callDenied counts a denied call. Its result, which follows, is printed.
func (p *Printer) callDenied(_ step.Event, d events.CallDenied) {
	p.denied[d.Name]++
}

// deniedTools prints the tools whose calls were denied.
func (p *Printer) deniedTools() {
	names := slices.Sorted(maps.Keys(p.denied))
	if len(names) == 0 {
		return
	}
	for i, name := range names {
		if n := p.denied[name]; n > 1 {
			names[i] = fmt.Sprintf("%s (%d)", name, n)
		}
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
