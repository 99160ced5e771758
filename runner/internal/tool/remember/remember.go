// Package remember keeps a small value of a tool in the state directory of a Run, for the next attempt.
package remember

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Load reads the value that an earlier attempt saved under a name into v. Without one, or without a directory, v is
// unchanged.
func Load(dir, name string, v any) error {
	if dir == "" {
		return nil
	}
	data, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading what an earlier attempt left: %w", err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("reading what an earlier attempt left in %s: %w", name, err)
	}
	return nil
}

// Save replaces the value of a name atomically.
func Save(dir, name string, v any) error {
	if dir == "" {
		return nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding %s for the next attempt: %w", name, err)
	}
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file+".new", data, 0o600); err != nil {
		return fmt.Errorf("saving for the next attempt: %w", err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		return fmt.Errorf("saving for the next attempt: %w", err)
	}
	return nil
}
