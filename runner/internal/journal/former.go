package journal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// What runners of before wrote under other names is read by what is in this file alone.

// formerNotice is the former name of [MarkNotice].
const formerNotice = "owed"

// UnmarshalText reads the type of a mark, also by a former name.
func (t *MarkType) UnmarshalText(text []byte) error {
	*t = MarkType(text)
	if *t == formerNotice {
		*t = MarkNotice
	}
	return nil
}

// Folders of the state directory for what commands printed.
const (
	commandsFolder = "commands"
	formerCommands = "hands"
)

// CommandsDir returns the folder of a state directory for what commands printed. A folder with the former
// name gets the name of today; if that fails, it is used as it is.
func CommandsDir(state string) string {
	dir, former := filepath.Join(state, commandsFolder), filepath.Join(state, formerCommands)
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return dir
	}
	if err := os.Rename(former, dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return former
	}
	return dir
}
