package journal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// asWritten are the rules of encoding/json, by which journals are written. The errors are not those of encoding/json, for
// which the text would be read once more.
var asWritten = json.JoinOptions(jsonv1.DefaultOptionsV1(), jsonv1.ReportErrorsWithLegacySemantics(false))

// decodeRecord reads the record of a line. Most of a journal are long texts, which encoding/json of Go 1.26 reads several
// times: of 1,000 steps of 20 KB it needs 240 ms of CPU from the start to the next model call.
func decodeRecord(body []byte) (Record, error) {
	var r Record
	err := json.Unmarshal(body, &r, asWritten)
	return r, err
}

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

// Folders of the state directory for the output of commands.
const (
	commandsFolder = "commands"
	formerCommands = "hands"
)

// CommandsDir returns the folder of a state directory for the output of commands. A folder with the former name is
// renamed; if that fails, it is used with its former name.
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
