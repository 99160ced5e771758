package config

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/internal/shared/schema"
	"github.com/deckhand-dev/deckhand/runner/internal/place"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// Read decodes the Task and the Snapshot that the operator sent. It refuses unknown fields and versions, and a Snapshot
// that is not the one of the Task.
func Read(taskJSON, snapshotJSON []byte) (task.Task, task.Snapshot, error) {
	var t task.Task
	var s task.Snapshot
	if err := Decode(taskJSON, &t); err != nil {
		return t, s, fmt.Errorf("reading the task: %w", err)
	}
	if err := checkVersion(t.Version, task.Version); err != nil {
		return t, s, fmt.Errorf("reading the task: %w", err)
	}
	if hash := task.Hash(snapshotJSON); hash != t.SnapshotHash {
		return t, s, fmt.Errorf("reading the snapshot: its hash is %s where the task names %s", hash, t.SnapshotHash)
	}
	if err := Decode(snapshotJSON, &s); err != nil {
		return t, s, fmt.Errorf("reading the snapshot: %w", err)
	}
	if err := checkVersion(s.Version, task.SnapshotVersion); err != nil {
		return t, s, fmt.Errorf("reading the snapshot: %w", err)
	}
	return t, s, check(t, s)
}

// Decode decodes one JSON value into v. It refuses fields that v does not have.
func Decode(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more behind its end")
	}
	return nil
}

func checkVersion(v, newest int) error {
	if v < 1 || v > newest {
		return fmt.Errorf("its version is %d; this runner knows versions up to %d", v, newest)
	}
	return nil
}

// check validates a task for all other parts of the runner.
func check(t task.Task, s task.Snapshot) error {
	switch {
	case t.Run.UID == "" || t.Run.Name == "":
		return errors.New("reading the task: run has no name or no uid")
	case t.Attempt < 1:
		return fmt.Errorf("reading the task: attempt is %d; the first is 1", t.Attempt)
	case t.Limits.Steps < 1:
		return errors.New("reading the task: limits.steps is not set")
	case len(s.Models) == 0:
		return errors.New("reading the snapshot: the Agent has no Model")
	}
	if err := checkLimits(t.Limits); err != nil {
		return fmt.Errorf("reading the task: %w", err)
	}
	for _, a := range s.Agents {
		if err := checkLimits(a.Limits); err != nil {
			return fmt.Errorf("reading the snapshot: the agent %s: %w", a.Name, err)
		}
	}
	return nil
}

// maxSeconds is a hundred years: a time.Duration holds less than three times as much.
const maxSeconds = 100 * 365 * 24 * 60 * 60

// checkLimits refuses limits that no Run can reach, or that every Run has reached.
func checkLimits(l task.Limits) error {
	for name, value := range map[string]int64{
		"steps": l.Steps, "modelCalls": l.ModelCalls, "toolCalls": l.ToolCalls, "tokens": l.Tokens,
		"costMicroUSD": l.CostMicroUSD, "durationSeconds": l.DurationSeconds, "depth": l.Depth, "waitSeconds": l.WaitSeconds,
	} {
		if value < 0 {
			return fmt.Errorf("limits.%s is %d; 0 means no limit", name, value)
		}
	}
	if most := max(l.DurationSeconds, l.WaitSeconds); most > maxSeconds {
		return fmt.Errorf("limits.duration or limits.wait is %d seconds; the most is %d", most, maxSeconds)
	}
	return nil
}

// Secrets returns the keys that a snapshot names, each once, beginning with those of the first Model.
func Secrets(s task.Snapshot) []task.SecretKey {
	var all []task.SecretKey
	add := func(k task.SecretKey) {
		if k.Secret != "" && !slices.Contains(all, k) {
			all = append(all, k)
		}
	}
	for _, m := range s.Models {
		add(m.SecretKey)
	}
	for _, a := range append([]task.Agent{s.Agent}, s.Agents...) {
		for _, t := range a.Tools {
			add(t.SecretKey)
		}
		for _, h := range a.Hooks {
			add(h.SecretKey)
		}
	}
	for _, t := range s.Toolsets {
		for _, k := range t.Keys() {
			add(k)
		}
	}
	return all
}

// The runner waits for a missing key, because Secrets are often created shortly after the objects that need them. It
// does not wait long: the kubelet updates a mounted Secret about once a minute, and a new pod gets the key at once.
const (
	keyTimeout = 15 * time.Second
	keyPoll    = 500 * time.Millisecond
)

// KeyFile returns a function that reads a key from a file at each call.
func KeyFile(path string) func() (string, error) {
	return func() (string, error) {
		data, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		return strings.TrimSpace(string(data)), nil
	}
}

// MountedKey returns a function that reads a key of a Secret mounted below dir, at each call. While the Secret or the
// key is missing, its error is an [os.ErrNotExist] and explains how to add the key.
func MountedKey(dir string, k task.SecretKey) func() (string, error) {
	read := KeyFile(filepath.Join(dir, k.Secret, k.Key))
	return func() (string, error) {
		value, err := read()
		if errors.Is(err, os.ErrNotExist) || err == nil && value == "" {
			return "", &missingKeyError{k}
		}
		return value, err
	}
}

// A missingKeyError means that a Secret lacks a key, or is missing itself.
type missingKeyError struct{ key task.SecretKey }

func (e *missingKeyError) Error() string {
	return fmt.Sprintf("%s: add the key, or create the Secret with kubectl create secret generic %s --from-literal=%s=…", task.MissingKey(e.key), e.key.Secret, e.key.Key)
}

// Is reports whether target is [os.ErrNotExist].
func (*missingKeyError) Is(target error) bool { return target == os.ErrNotExist }

// AwaitKeys waits until each of the keys can be read, and returns their values as secrets. The place of the agent is
// for messages.
func AwaitKeys(ctx context.Context, at place.Place, keys []task.SecretKey, namespace string, read func(task.SecretKey) func() (string, error)) ([]redact.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, keyTimeout)
	defer cancel()
	secrets := make([]redact.Secret, 0, len(keys))
	var absent []task.SecretKey
	for _, k := range keys {
		value, err := await(ctx, at.Key(k), read(k))
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			absent = append(absent, k)
		case err != nil:
			return secrets, err
		default:
			secrets = append(secrets, redact.Secret{Name: k.Secret, Key: k.Key, Value: []byte(value)})
		}
	}
	if len(absent) > 0 {
		return secrets, keysMissing(at, absent, namespace)
	}
	return secrets, nil
}

// keysMissing returns the error that ends an attempt whose Secrets lack keys. It names all of them.
func keysMissing(at place.Place, keys []task.SecretKey, namespace string) error {
	k := keys[0]
	switch at {
	case place.Program:
		return misconfigured("%s returned no key for %s", at.Key(k), keyTimeout)
	case place.Local:
		return misconfigured("Reading %s: it is empty. Write the key where you read it from: a file, a variable or the manifest of the Secret", at.Key(k))
	case place.Pod:
	}
	if len(keys) == 1 {
		return task.End(task.ReasonSecretMissing,
			"%s in namespace %s; %s",
			task.MissingKey(k), namespace, howToAdd(k))
	}
	names := make([]string, 0, len(keys))
	for _, k := range keys {
		names = append(names, fmt.Sprintf("key %s of Secret %s", k.Key, k.Secret))
	}
	return task.End(task.ReasonSecretMissing,
		"%d keys of Secrets are missing in namespace %s: %s; for the first, %s",
		len(keys), namespace, strings.Join(names, ", "), howToAdd(k))
}

// howToAdd returns how a user adds a key. A runner cannot see whether the Secret exists.
func howToAdd(k task.SecretKey) string {
	return fmt.Sprintf(`if the Secret exists, add the key with kubectl patch secret %s --patch='{"stringData":{"%s":"…"}}', else create it with kubectl create secret generic %s --from-literal=%s=…`,
		k.Secret, k.Key, k.Secret, k.Key)
}

// await waits for one key.
func await(ctx context.Context, name string, read func() (string, error)) (string, error) {
	poll := time.NewTicker(keyPoll)
	defer poll.Stop()
	for {
		value, err := read()
		if err == nil && value != "" {
			return value, nil
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", misconfigured("Reading %s: %w", name, err)
		}
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-poll.C:
		}
	}
}

// withPortableSchemas returns tools with schemas that all providers accept. Calls are validated against these schemas.
// A provider refuses a whole request because of the schema of one tool, even if the model never calls it.
func withPortableSchemas(tools []tool.Tool) []tool.Tool {
	all := slices.Clone(tools)
	for i, t := range all {
		if len(t.Input) == 0 {
			continue
		}
		repaired, changes := schema.Portable(t.Input)
		if len(changes) == 0 {
			continue
		}
		known := t.Internal.Facts()
		known.SchemaChanges = changes
		all[i].Input, all[i].Internal = repaired, known.Internal()
	}
	return all
}
