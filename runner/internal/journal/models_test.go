package journal

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// sameModels returns which Models the header of a Run names as unchanged. A Run before it had the Models a and b; change
// changes what that Run left.
func sameModels(t *testing.T, now map[string]string, change func(modelsFile string)) ([]string, error) {
	t.Helper()
	dir := t.TempDir()
	source := SourceDir(dir)
	if err := os.MkdirAll(source, 0o700); err != nil {
		t.Fatal(err)
	}
	open := func(o Options) error {
		o.Attempt, o.Now = 1, time.Now
		d, err := Open(o)
		if err != nil {
			return err
		}
		return d.Close()
	}
	if err := open(Options{Dir: source, RunUID: "first", Models: map[string]string{"a": "1", "b": "2"}}); err != nil {
		t.Fatal(err)
	}
	change(filepath.Join(source, modelsFile))
	if err := open(Options{Dir: dir, RunUID: "second", Models: now, Continue: &Continued{Run: "one", RunUID: "first"}}); err != nil {
		return nil, err
	}
	found, err := segments(dir)
	if err != nil || len(found) != 1 || found[0].header.Continues == nil {
		t.Fatalf("the files are %+v, %v", found, err)
	}
	return found[0].header.Continues.Models, nil
}

// Only a Model whose definition is the same gets the opaque parts of what it answered in the Run before.
func TestWhichModelsAreTheSame(t *testing.T) {
	keep := func(string) {}
	remove := func(path string) { _ = os.Remove(path) }
	damage := func(path string) { _ = os.WriteFile(path, []byte("{"), 0o600) }
	for name, tc := range map[string]struct {
		change func(string)
		now    map[string]string // of the Run that continues it
		want   []string
	}{
		"all":                     {keep, map[string]string{"b": "2", "a": "1"}, []string{"a", "b"}},
		"one was changed":         {keep, map[string]string{"a": "1", "b": "3"}, []string{"a"}},
		"one has another name":    {keep, map[string]string{"c": "1"}, nil},
		"a runner of before":      {remove, map[string]string{"a": "1"}, nil},
		"a file that was damaged": {damage, map[string]string{"a": "1"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := sameModels(t, tc.now, tc.change)
			if err != nil || !slices.Equal(got, tc.want) {
				t.Errorf("got %v, %v; want %v", got, err, tc.want)
			}
		})
	}
}
