package requests

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
)

// Kinds of pending requests that a user decides.
const (
	KindApproval = "Approval"
	KindQuestion = "Question"
	KindLimit    = "Limit"
)

// Show prints a request, and why it is not whole. Lines that the model wrote begin with a bar,
// so that they cannot pass for lines of this program.
func Show(s *terminal.Streams, out io.Writer, run *v1alpha1.Run, r *v1alpha1.PendingRequest, incomplete string) {
	fmt.Fprintf(out, "Run %s/%s asks:\n", run.Namespace, run.Name)
	terminal.Field(out, "Request", r.ID)
	terminal.Field(out, "Kind", r.Kind)
	terminal.Field(out, "Agent", r.Agent)
	terminal.Field(out, "Tool", r.Tool)
	terminal.Field(out, "Rule", r.Rule)
	if r.Approvers != nil {
		terminal.Field(out, "Approvers", strings.Join(r.Approvers.Groups, ", "))
		terminal.Field(out, "Users", strings.Join(r.Approvers.Users, ", "))
	}
	terminal.Field(out, "Asked", s.Since(terminal.TimeOf(r.AskedAt)))
	terminal.Block(out, "Question", r.Question)
	terminal.Block(out, "Arguments", terminal.IndentedJSON(r.Args))
	switch {
	case incomplete != "":
		fmt.Fprintln(out, "  Only a part of the arguments is shown: "+untrusted.Line(incomplete, 1024))
	case r.ArgsTruncated:
		fmt.Fprintf(out, "  Only a part of the arguments is shown. To see all of them: %s\n", Command("pending", run))
	}
	terminal.Block(out, "Schema of the value", terminal.IndentedJSON(r.Schema))
}

// Command returns a command about a Run that a user may copy.
func Command(verb string, run *v1alpha1.Run, rest ...string) string {
	return CommandAbout(verb, types.NamespacedName{Namespace: run.Namespace, Name: run.Name}, rest...)
}

// CommandAbout returns a command about an object. It includes the namespace, which may differ from the namespace of the
// kubeconfig.
func CommandAbout(verb string, key types.NamespacedName, rest ...string) string {
	words := slices.Concat([]string{"kubectl deckhand", verb, key.Name}, rest)
	return strings.Join(append(words, "-n", key.Namespace), " ")
}
