package stored_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/revision/stored"
	"github.com/deckhand-dev/deckhand/runner/task"
)

const changed = `%s is a revision as a released operator may have stored it, and a change of code changed
what it means: Runs in flight would change, or stop, when their operator is upgraded.
Do not edit the file. Take the change back, or add version %d of the stored form and a
conversion, as the documentation of package stored says.
%v`

// Revisions in testdata/revisions are never changed once their version is released. What
// an operator makes of them is in the golden files of internal/controller/run and
// internal/workflow.
func TestStoredRevisionsKeepTheirMeaning(t *testing.T) {
	for v := 1; v <= stored.Version; v++ {
		files := documents(t, v)
		for file, data := range files {
			decoded, err := decode(file, data)
			if err != nil {
				t.Errorf(changed, file, stored.Version+1, err)
				continue
			}
			if v < stored.Version {
				continue // its conversion has a golden file of its own
			}
			if diff := cmp.Diff(tree(t, data), tree(t, encode(t, decoded))); diff != "" {
				t.Errorf(changed, file, stored.Version+1, "-stored +encoded again:\n"+diff)
			}
		}
	}
}

// A field that no document has is not protected by the test above.
func TestStoredRevisionsHaveEveryField(t *testing.T) {
	set := map[string]bool{}
	for file, data := range documents(t, stored.Version) {
		decoded, err := decode(file, data)
		if err != nil {
			t.Fatal(err)
		}
		note(set, reflect.ValueOf(decoded), true)
	}
	for path, is := range set {
		if !is {
			t.Errorf("%s is in no document of testdata/revisions/v%d: add a document with it, or add it to one while the version is not released", path, stored.Version)
		}
	}
}

// note records which fields of the structs of this module are set anywhere.
func note(set map[string]bool, v reflect.Value, there bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v = reflect.New(v.Type().Elem())
			there = false
		}
		note(set, v.Elem(), there)
	case reflect.Slice, reflect.Map:
		note(set, reflect.New(v.Type().Elem()).Elem(), false)
		if v.Kind() == reflect.Slice {
			for i := range v.Len() {
				note(set, v.Index(i), there)
			}
			return
		}
		for _, k := range v.MapKeys() {
			note(set, v.MapIndex(k), there)
		}
	case reflect.Struct:
		if !strings.HasPrefix(v.Type().PkgPath(), "github.com/deckhand-dev/deckhand/") {
			return
		}
		for i := range v.NumField() {
			path := v.Type().String() + "." + v.Type().Field(i).Name
			set[path] = set[path] || there && !v.Field(i).IsZero()
			note(set, v.Field(i), there)
		}
	default:
	}
}

func documents(t *testing.T, version int) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("testdata/revisions/v%d/*.json", version))
	if err != nil || len(files) < 3 {
		t.Fatalf("testdata/revisions/v%d has the documents %v, error %v", version, files, err)
	}
	out := map[string][]byte{}
	for _, file := range files {
		if out[file], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func decode(file string, data []byte) (any, error) {
	switch name := filepath.Base(file); {
	case strings.HasPrefix(name, "agent"):
		return stored.DecodeAgent(data)
	case strings.HasPrefix(name, "runner"):
		return stored.DecodeVersion[task.Snapshot]("snapshot for the runner", task.Version, data)
	}
	return stored.DecodeWorkflow(data)
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func tree(t *testing.T, data []byte) any {
	t.Helper()
	var out any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
