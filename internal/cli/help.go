package cli

import (
	_ "embed"
	"fmt"

	"github.com/spf13/cobra"
)

// commandGroups are the commands as help lists them.
var commandGroups = []struct {
	id, title string
	commands  []string
}{
	{"start", "Start work:", []string{"run", "continue", "fork", "retry", "lint", "convert"}},
	{"see", "See what Runs do:", []string{"list", "logs", "why", "tree", "result", "cp", "cost", "hosts"}},
	{"decide", "Decide what Runs ask:", []string{"pending", "approve", "deny", "answer", "grant", "message"}},
	{"control", "Control Runs:", []string{"pause", "resume", "stop"}},
}

// usage is the template of the usage of a command. It leaves out the flags of kubectl for clusters and users, which are
// longer than all others together: the command options prints them.
//
//go:embed help.tmpl
var usage string

// setHelp groups the commands, and moves the flags that all of them have to the command options.
func setHelp(root *cobra.Command) {
	root.SetUsageTemplate(usage)
	groups := map[string]string{}
	for _, g := range commandGroups {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, name := range g.commands {
			groups[name] = g.id
		}
	}
	for _, c := range root.Commands() {
		c.GroupID = groups[c.Name()]
	}
}

// newOptions returns the command that prints the flags of all commands, like kubectl options.
func newOptions(f *Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "Print the flags for clusters, users and namespaces, which all commands have",
		Args:  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(f.Out, "These flags can be passed to any command:\n\n"+c.Root().PersistentFlags().FlagUsages())
			return err
		},
	}
}
