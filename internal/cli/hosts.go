package cli

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/runflags"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
)

// maxHosts is how many entries sandbox.egress.hosts may have.
const maxHosts = 64

func newHosts(f *Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "hosts AGENT",
		Short: "List the hosts that commands of an Agent were refused, and what would allow them",
		Args:  arguments(1, 1),
		RunE:  func(c *cobra.Command, args []string) error { return hostLister{f}.list(c.Context(), args[0]) },
	}
}

// A hostLister prints which hosts the Runs of an Agent were refused.
type hostLister struct{ *Factory }

// A triedHost is a host and port that Runs were refused.
type triedHost struct {
	v1alpha1.RefusedHost // of all Runs
	runs                 int
	last                 metav1.Time // when the last of these Runs was created
}

func (hl hostLister) list(ctx context.Context, name string) error {
	c, err := hl.Client()
	if err != nil {
		return err
	}
	agent := &v1alpha1.Agent{}
	if kind, of := runflags.CutKind(name); kind == "agent" {
		name = of
	}
	if err := hl.find(ctx, c, "Agent", name, agent); err != nil {
		return err
	}
	runs, err := listRuns(ctx, c, client.InNamespace(agent.Namespace))
	if err != nil {
		return err
	}
	runs = slices.DeleteFunc(runs, func(r v1alpha1.Run) bool { return r.Spec.Agent != agent.Name })
	tried, unlisted := triedHosts(runs)
	if len(tried) == 0 && unlisted == 0 {
		fmt.Fprintf(hl.Err, "No connection was refused in %s of Agent %s\n", terminal.Plural(len(runs), "Run"), agent.Name)
		return nil
	}
	if err := hl.print(agent, tried); err != nil {
		return err
	}
	if unlisted > 0 {
		fmt.Fprintf(hl.Err, "%d more connections were to hosts beyond the first 20 of a Run, or to names that are not valid: see the events host.refused in the logs\n", unlisted)
	}
	return nil
}

// triedHosts sums up the refused connections of Runs, most frequent first, and returns how many of them were to hosts
// that no status lists.
func triedHosts(runs []v1alpha1.Run) (all []*triedHost, unlisted int64) {
	known := map[string]*triedHost{}
	for i := range runs {
		refused := progressOf(&runs[i]).Refused
		if refused == nil {
			continue
		}
		listed := int64(0)
		for _, h := range refused.Hosts {
			t := known[hostPort(h)]
			if t == nil {
				t = &triedHost{RefusedHost: v1alpha1.RefusedHost{Host: h.Host, Port: h.Port}}
				known[hostPort(h)], all = t, append(all, t)
			}
			if created := runs[i].CreationTimestamp; t.runs == 0 || t.last.Before(&created) {
				t.last, t.Reason = created, h.Reason
			}
			t.runs++
			t.Count += h.Count
			listed += h.Count
		}
		unlisted += max(refused.Connections-listed, 0)
	}
	slices.SortFunc(all, func(a, b *triedHost) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Port, b.Port))
	})
	return all, unlisted
}

func (hl hostLister) print(agent *v1alpha1.Agent, tried []*triedHost) error {
	var allowed []string
	if s := agent.Spec.Sandbox; s != nil && s.Egress != nil {
		for _, h := range s.Egress.Hosts {
			allowed = append(allowed, string(h))
		}
	}
	var missing []string
	t := newTable(hl.Out, "HOST", "COUNT", "RUNS", "LAST RUN", "ALLOWED NOW")
	for _, h := range tried {
		now := "no"
		switch {
		case slices.ContainsFunc(allowed, func(entry string) bool { return allows(entry, h.Host) }):
			now = "yes"
			if h.Reason == v1alpha1.RefusedNotPublic {
				now = "no, it leads to no public address"
			}
		case !canBeAllowed(h.Host):
			now = "no, it is not a host name"
		case !slices.Contains(missing, h.Host):
			missing = append(missing, h.Host)
		}
		t.row(hostPort(h.RefusedHost), strconv.FormatInt(h.Count, 10), strconv.Itoa(h.runs), hl.Since(h.last), now)
	}
	if err := t.print(); err != nil {
		return err
	}
	hl.propose(agent, allowed, missing)
	return nil
}

// propose prints the settings that would allow the missing hosts.
func (hl hostLister) propose(agent *v1alpha1.Agent, allowed, missing []string) {
	if len(missing) == 0 {
		return
	}
	missing = missing[:min(len(missing), max(maxHosts-len(allowed), 0))]
	if len(missing) == 0 {
		fmt.Fprintf(hl.Out, "\nAgent %s has %d hosts, and no more are possible: write *.example.com for all hosts below one\n", agent.Name, len(allowed))
		return
	}
	fmt.Fprintf(hl.Out, "\nCommands choose these names, and can send data to each host that they reach. Keep only the\n"+
		"hosts that the work needs, and put them into Agent %s:\n\nspec:\n  sandbox:\n    egress:\n      hosts:\n", agent.Name)
	for _, h := range allowed {
		fmt.Fprintf(hl.Out, "      - %q\n", h)
	}
	for _, h := range missing {
		fmt.Fprintf(hl.Out, "      - %q # new\n", h)
	}
}

// allows reports whether an entry of sandbox.egress.hosts allows a host, as the runner's
// proxy decides it.
func allows(entry, host string) bool {
	if below, is := strings.CutPrefix(entry, "*"); is {
		return len(host) > len(below) && strings.HasSuffix(host, below)
	}
	return entry == host
}

// canBeAllowed reports whether a host can be proposed for sandbox.egress.hosts: a DNS name, not an address.
func canBeAllowed(host string) bool {
	_, err := netip.ParseAddr(host)
	return err != nil && strings.Contains(host, ".") && len(validation.IsDNS1123Subdomain(host)) == 0
}
