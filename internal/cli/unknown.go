package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/runflags"
)

// aliases are names in other programs for commands that change nothing.
var aliases = map[string][]string{
	"list":    {"ls", "ps"},
	"why":     {"get", "describe", "show", "status", "explain", "inspect"},
	"logs":    {"log", "attach"},
	"pending": {"requests", "approvals", "inbox"},
	"cost":    {"costs", "usage"},
	"lint":    {"validate", "check"},
	"cp":      {"copy", "download"},
}

// instead suggests what to write for commands of other programs that change something. The command is not executed,
// because it may do something else than the user expects.
var instead = []struct {
	words string
	hint  string
}{
	{"delete del rm remove", "To delete a Run with its pods: kubectl delete run NAME. To end it and keep its result: kubectl deckhand stop NAME"},
	{"cancel kill abort end terminate quit", "To end a Run for good: kubectl deckhand stop NAME. To interrupt it: kubectl deckhand pause NAME"},
	{"rerun redo restart repeat resubmit again", "A Run is done once. To do the same work again, in a new session and an empty workspace: kubectl deckhand run --from run/NAME. To continue its session: kubectl deckhand continue NAME. To run a workflow from what failed: kubectl deckhand retry NAME"},
	{"unpause unsuspend", "To continue a paused Run: kubectl deckhand resume NAME. To continue a Run that has ended: kubectl deckhand continue NAME TEXT"},
	{"branch rewind", "To continue a Run from an earlier step: kubectl deckhand fork NAME --step N"},
	{"suspend hold", "To interrupt a Run: kubectl deckhand pause NAME"},
	{"create start submit launch new", "To create a Run: kubectl deckhand run AGENT TEXT"},
	{"exec sh bash shell", "Commands cannot be run in a Run. To copy its files: kubectl deckhand cp RUN:PATH PATH. To tell its agent what to do: kubectl deckhand message RUN TEXT"},
	{"apply edit patch set", "Agents, Models, Toolsets and Workflows are changed with kubectl: kubectl apply -f FILE. To create a Run: kubectl deckhand run AGENT TEXT"},
	{"reject refuse", "To refuse a tool call: kubectl deckhand deny RUN"},
	{"allow accept confirm", "To allow a tool call: kubectl deckhand approve RUN"},
	{"reply respond", "To answer a question: kubectl deckhand answer RUN TEXT"},
	{"ask send say tell prompt chat", "To give an agent new work: kubectl deckhand run AGENT TEXT. To send a message to a Run that works: kubectl deckhand message RUN TEXT"},
	{"wait watch follow", "To watch a Run: kubectl deckhand logs -f RUN. To watch all: kubectl deckhand list -w"},
	{"events event", "To see the events of a Run: kubectl deckhand why RUN"},
	{"login auth config", "The command line uses the kubeconfig of kubectl: see kubectl config get-contexts"},
}

// unknownCommand returns the error of a command that does not exist.
func unknownCommand(root *cobra.Command, word string) error {
	lower := strings.ToLower(word)
	for _, i := range instead {
		if slices.Contains(strings.Fields(i.words), lower) {
			return exit.Usagef("there is no command %q. %s", word, i.hint)
		}
	}
	if near := nearest(lower, commandNames(root)); len(near) > 0 {
		return exit.Usagef("there is no command %q. Did you mean %s?", word, strings.Join(near, ", "))
	}
	return exit.Usagef("there is no command %q. See: %s --help", word, root.CommandPath())
}

// commandNames returns the names of commands that are suggested for a mistyped word. Names of two letters are left out,
// because they are similar to every short word.
func commandNames(root *cobra.Command) []string {
	const shortest = 3
	var names []string
	for _, c := range root.Commands() {
		for _, name := range append([]string{c.Name()}, c.Aliases...) {
			if len(name) >= shortest {
				names = append(names, name)
			}
		}
	}
	return names
}

// flagError returns the error of a flag that cannot be parsed. If the command does not exist, the error is about the
// command, because its flags are unknown for that reason.
func flagError(c *cobra.Command, err error) error {
	if words := c.Flags().Args(); !c.HasParent() && len(words) > 0 {
		return unknownCommand(c, words[0])
	}
	return runflags.Invalid(c, err)
}
