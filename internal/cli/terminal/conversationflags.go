package terminal

import (
	"io"
	"os"
	"slices"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/deckhand-dev/deckhand/internal/cli/conversation"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
)

// ConversationFlags are the flags that determine how a conversation is shown.
type ConversationFlags struct {
	Color string
	// JSON is whether the conversation is printed as its events.
	JSON bool
}

// Bind adds the flags with their descriptions.
func (c *ConversationFlags) Bind(flags *pflag.FlagSet, color, asJSON string) {
	flags.StringVar(&c.Color, "color", ColorAuto, color+": auto, always or never")
	flags.BoolVar(&c.JSON, "json", false, asJSON)
}

// ConversationOptions returns the options with which a terminal shows a conversation. NO_COLOR is a convention of many
// programs (no-color.org).
func ConversationOptions(o ConversationFlags, out io.Writer) (conversation.Options, error) {
	options := conversation.Options{Out: out, JSON: o.JSON}
	file, isFile := out.(*os.File)
	isTerminal := isFile && term.IsTerminal(int(file.Fd()))
	if isTerminal && o.JSON { // custom runners may log what is no JSON
		options.Out = &SafeWriter{Out: out}
	}
	if isTerminal {
		options.Width = columns(file) // 0: the default
		options.Wrap = options.Width > 0
	}
	options.Color = o.Color == colorAlways
	if o.Color == ColorAuto {
		options.Color = isTerminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	}
	return options, CheckColor(o.Color)
}

// Values of --color.
const (
	ColorAuto   = "auto"
	colorAlways = "always"
	ColorNever  = "never"
)

// CheckColor returns an error unless a value is one of --color.
func CheckColor(value string) error {
	if slices.Contains([]string{ColorAuto, colorAlways, ColorNever}, value) {
		return nil
	}
	return exit.Usagef("unknown value %q of --color: use auto, always or never", value)
}
