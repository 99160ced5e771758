package config

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/place"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A missing key is waited for, because Secrets are often applied a moment
// after what needs them; but not for long: the kubelet looks for a new key of a
// mounted Secret about once a minute, and a new pod sees it at once.
const (
	keyTimeout = 15 * time.Second
	keyPoll    = 500 * time.Millisecond
)

// KeyFile reads a key from a file, each time anew.
func KeyFile(path string) func() (string, error) {
	return func() (string, error) {
		data, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		return strings.TrimSpace(string(data)), nil
	}
}

// MountedKey reads a key of a Secret that is mounted below dir, each time anew. While the Secret or
// the key is missing, the error, an [os.ErrNotExist], says how to add it.
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
	return fmt.Sprintf("Secret %s has no key %s; %s", e.key.Secret, e.key.Key, howToAdd(e.key))
}

// Is reports whether target is [os.ErrNotExist].
func (*missingKeyError) Is(target error) bool { return target == os.ErrNotExist }

// AwaitKeys waits until each of the keys can be read, and returns them as the
// secrets that they are. at says where the agent works.
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

// keysMissing ends an attempt whose Secrets lack keys, and names all of them.
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
			"Secret %s has no key %s in namespace %s; %s; the Run continues within two minutes after it exists",
			k.Secret, k.Key, namespace, howToAdd(k))
	}
	names := make([]string, 0, len(keys))
	for _, k := range keys {
		names = append(names, fmt.Sprintf("key %s of Secret %s", k.Key, k.Secret))
	}
	return task.End(task.ReasonSecretMissing,
		"%d keys of Secrets are missing in namespace %s: %s; for the first, %s; the Run continues within two minutes after it exists",
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
