package requests

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFieldsKeepTheOrderOfTheSchema(t *testing.T) {
	f, _ := FormOf(`{"properties":{"env":{},"replicas":{},"dry":{},"a":{}}}`)
	if diff := cmp.Diff([]string{"env", "replicas", "dry", "a"}, f.nameList()); diff != "" {
		t.Error(diff)
	}
}
