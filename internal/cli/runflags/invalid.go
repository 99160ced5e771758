package runflags

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/shared/template"
)

// Invalid returns the error of a flag that cannot be parsed, with what to write.
func Invalid(c *cobra.Command, err error) error {
	if wrong, is := errors.AsType[*pflag.InvalidValueError](err); is {
		return invalidValue(c, wrong)
	}
	similar := ""
	if unknown, is := errors.AsType[*pflag.NotExistError](err); is && unknown.GetSpecifiedShortnames() == "" {
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		similar = strings.Replace(template.Similar(unknown.GetSpecifiedName(), names), "mean ", "mean --", 1)
	}
	if similar != "" {
		return exit.Usagef("%v%s See: %s --help", err, similar, c.CommandPath())
	}
	return exit.Usagef("%v. See: %s --help", err, c.CommandPath())
}

// flagValues describe the values of flags, by type.
var flagValues = map[string]string{
	"int": "a whole number", "int32": "a whole number", "int64": "a whole number", "bool": "true or false, or the flag alone",
	"duration": "a time such as 90s, 10m or 1h30m",
}

// invalidValue returns the error of a value that a flag cannot have.
func invalidValue(c *cobra.Command, wrong *pflag.InvalidValueError) error {
	flag := wrong.GetFlag()
	want, known := flagValues[flag.Value.Type()]
	if !known {
		return exit.Usagef("--%s %s: %v. See: %s --help", flag.Name, quotedIfEmpty(wrong.GetValue()), errors.Unwrap(wrong), c.CommandPath())
	}
	return exit.Usagef("--%s %s: write %s. See: %s --help", flag.Name, quotedIfEmpty(wrong.GetValue()), want, c.CommandPath())
}
