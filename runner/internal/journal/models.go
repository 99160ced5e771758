package journal

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// modelsFile has the hashes of the definitions of the Models of a Run, by name, for the Run that continues it.
const modelsFile = "models.json"

// writeModels writes the models file of a directory, whole or not at all, unless it has these hashes.
func writeModels(dir string, hashes map[string]string) error {
	if len(hashes) == 0 {
		return nil
	}
	data, err := json.Marshal(hashes)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, modelsFile)
	if has, err := os.ReadFile(path); err == nil && string(has) == string(data) {
		return nil
	}
	unfinished := path + ".new"
	if err := errors.Join(os.WriteFile(unfinished, data, 0o600), os.Rename(unfinished, path)); err != nil {
		return appendError(err)
	}
	return nil
}

// unchangedModels returns the names of the Models whose definitions are the same in the models file of a directory. A
// runner of before wrote none, and a lost cluster node may leave an incomplete one: no Model counts as the same then.
func unchangedModels(dir string, hashes map[string]string) ([]string, error) {
	data, err := os.ReadFile(filepath.Join(dir, modelsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var before map[string]string
	_ = json.Unmarshal(data, &before)
	var out []string
	for name, hash := range hashes {
		if before[name] == hash {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out, nil
}
