package config

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

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

// AwaitKeys waits until each of the keys can be read, and returns them as the
// secrets that they are.
func AwaitKeys(ctx context.Context, keys []task.SecretKey, namespace string, read func(task.SecretKey) func() (string, error)) ([]redact.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, keyTimeout)
	defer cancel()
	secrets := make([]redact.Secret, 0, len(keys))
	var absent []task.SecretKey
	for _, k := range keys {
		value, err := await(ctx, k, read(k))
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
		return secrets, keysMissing(absent, namespace)
	}
	return secrets, nil
}

// keysMissing ends an attempt whose Secrets lack keys, and names all of them.
func keysMissing(keys []task.SecretKey, namespace string) error {
	k := keys[0]
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
func await(ctx context.Context, k task.SecretKey, read func() (string, error)) (string, error) {
	poll := time.NewTicker(keyPoll)
	defer poll.Stop()
	for {
		value, err := read()
		if err == nil && value != "" {
			return value, nil
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", misconfigured("Reading the key %s of the Secret %s: %w", k.Key, k.Secret, err)
		}
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-poll.C:
		}
	}
}
