// Package statuspatch merges conditions, and writes a status as a JSON Patch of the changed fields, after tests of
// fields that must be unchanged.
//
// A Run's status has two writers. If each write required an unchanged resource version, the frequent writer would
// starve the other. So that is required only if the whole object matters: to reserve an attempt, and to end a Run.
package statuspatch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// An Op is one operation of a JSON Patch (RFC 6902).
type Op struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"` // null if the operation has none, or tests that the field is absent
}

// SameObject returns an operation that tests the UID of o: another object may have its name by now.
func SameObject(o client.Object) Op {
	return Op{"test", "/metadata/uid", o.GetUID()}
}

// SameVersion returns an operation that makes the patch fail with a conflict if the object has changed since o was
// read.
func SameVersion(o client.Object) Op {
	return Op{"add", "/metadata/resourceVersion", o.GetResourceVersion()}
}

// Same returns an operation that tests that a field has a value.
func Same(path string, value any) Op {
	return Op{"test", path, value}
}

// Apply writes the status of an object once, if it changed. It is not an error if the object
// was deleted.
func Apply(ctx context.Context, c client.Client, o client.Object, had, want any) error {
	patch, err := Diff(had, want, SameObject(o))
	if err != nil || patch == nil {
		return err
	}
	seen, _ := o.DeepCopyObject().(client.Object) // a copy has the same type
	if err := c.Status().Patch(ctx, seen, patch); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("patching status: %w", err))
	}
	return nil
}

// Diff returns the patch from a status to another, after tests; nil: there is nothing to change. Statuses are compared
// field by field, and conditions by type: conditions of other controllers are not changed.
func Diff(had, want any, tests ...Op) (client.Patch, error) {
	was, err := encode(had)
	if err != nil {
		return nil, err
	}
	now, err := encode(want)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(was, now) { // most statuses when the operator starts
		return nil, nil //nolint:nilnil // nothing to change is not an error
	}
	return diff(was, now, tests)
}

func encode(status any) ([]byte, error) {
	data, err := json.Marshal(status)
	if err != nil {
		return nil, fmt.Errorf("encoding a status: %w", err)
	}
	return data, nil
}

// diff compares statuses in JSON.
func diff(had, want []byte, tests []Op) (client.Patch, error) {
	var was, now map[string]any
	if err := errors.Join(json.Unmarshal(had, &was), json.Unmarshal(want, &now)); err != nil {
		return nil, fmt.Errorf("decoding a status: %w", err)
	}
	conditions := diffConditions(was[conditionsKey], now[conditionsKey])
	delete(was, conditionsKey)
	delete(now, conditionsKey)
	ops := append(slices.Clone(tests), conditions...)
	for _, key := range slices.Sorted(maps.Keys(now)) {
		if !reflect.DeepEqual(was[key], now[key]) {
			ops = append(ops, Op{"add", "/status/" + key, now[key]})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(was)) {
		if _, kept := now[key]; !kept {
			ops = append(ops, Op{"remove", "/status/" + key, nil})
		}
	}
	if len(ops) == len(tests) {
		return nil, nil //nolint:nilnil // nothing to change is not an error
	}
	data, err := json.Marshal(ops)
	if err != nil {
		return nil, fmt.Errorf("encoding a patch: %w", err)
	}
	return client.RawPatch(types.JSONPatchType, data), nil
}

const conditionsKey = "conditions"

// diffConditions returns the operations that change one list of conditions into another, each after a test that the
// element at its index still has the type that was read. Removals are last, from the end of the list, since each moves
// the elements after it.
func diffConditions(had, want any) []Op {
	was, _ := had.([]any)
	now, _ := want.([]any)
	const path = "/status/" + conditionsKey
	if len(was) == 0 {
		if len(now) == 0 {
			return nil
		}
		return []Op{Same(path, had), {"add", path, now}}
	}
	var changed, added, removed []Op
	for i, old := range was {
		at := fmt.Sprintf("%s/%d", path, i)
		next := slices.IndexFunc(now, func(c any) bool { return typeOf(c) == typeOf(old) })
		switch {
		case next < 0:
			removed = append([]Op{Same(at+"/type", typeOf(old)), {"remove", at, nil}}, removed...)
		case !reflect.DeepEqual(old, now[next]):
			changed = append(changed, Same(at+"/type", typeOf(old)), Op{"replace", at, now[next]})
		}
	}
	for _, c := range now {
		if !slices.ContainsFunc(was, func(old any) bool { return typeOf(old) == typeOf(c) }) {
			added = append(added, Op{"add", path + "/-", c})
		}
	}
	return slices.Concat(changed, added, removed)
}

// typeOf returns the type of a condition that was decoded from JSON.
func typeOf(condition any) any {
	fields, _ := condition.(map[string]any)
	return fields["type"]
}
