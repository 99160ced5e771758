package config

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/redact"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A missing key is waited for, because Secrets are often applied a moment
// after what needs them; but not for long: the kubelet looks for a new key of a
// mounted Secret about once a minute, and a new pod sees it at once.
const (
	keyPatience = 15 * time.Second
	keyPoll     = 500 * time.Millisecond
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

// AwaitKey waits until the key of a Model can be read, and returns it as the
// secret that it is. A Model without a Secret needs none.
func AwaitKey(ctx context.Context, m task.Model, namespace string, key func() (string, error)) ([]redact.Secret, error) {
	if m.Secret == "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, keyPatience, task.End(task.ReasonSecretMissing,
		"Secret %s has no key %s in namespace %s; once it is there, the Run goes on by itself within two minutes", m.Secret, m.Key, namespace))
	defer cancel()
	poll := time.NewTicker(keyPoll)
	defer poll.Stop()
	for {
		value, err := key()
		if err == nil && value != "" {
			return []redact.Secret{{Name: m.Secret, Key: m.Key, Value: []byte(value)}}, nil
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, misconfigured("Reading the key %s of the Secret %s: %w", m.Key, m.Secret, err)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-poll.C:
		}
	}
}
