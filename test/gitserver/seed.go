package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// repository is the name of the only repository.
const repository = "app.git"

// seed are the files of its first commit. The names end in .txt, so that they are not a module of this repository.
//
//go:embed all:seed
var seed embed.FS

// createRepository makes the repository, unless it is there. Its first commit is the same
// everywhere.
func createRepository(ctx context.Context, root string) error {
	bare := filepath.Join(root, repository)
	if _, err := os.Stat(bare); err == nil {
		return nil
	}
	work, err := os.MkdirTemp(root, "planting-")
	if err != nil {
		return fmt.Errorf("planting %s: %w", repository, err)
	}
	defer os.RemoveAll(work) //nolint:errcheck // it is not served
	if err := writeSeed(work); err != nil {
		return fmt.Errorf("planting %s: %w", repository, err)
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"},
		{"add", "--all"},
		{"commit", "--quiet", "--message=Tell when the water is high"},
		{"clone", "--quiet", "--bare", ".", bare},
	} {
		if _, err := git(ctx, work, args...); err != nil {
			return fmt.Errorf("planting %s: %w", repository, err)
		}
	}
	return nil
}

// writeSeed writes the files of the first commit.
func writeSeed(dir string) error {
	return fs.WalkDir(seed, "seed", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := seed.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, strings.TrimSuffix(filepath.Base(path), ".txt")), data, 0o644)
	})
}

// git runs git without configuration, and with a fixed author and time.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...) //nolint:gosec // the arguments are ours
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Tide", "GIT_AUTHOR_EMAIL=tide@example.com", "GIT_AUTHOR_DATE=1700000000 +0000",
		"GIT_COMMITTER_NAME=Tide", "GIT_COMMITTER_EMAIL=tide@example.com", "GIT_COMMITTER_DATE=1700000000 +0000",
	}
	out, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("running git %s: %w: %s", args[0], err, failed.Stderr)
	}
	if err != nil {
		return "", fmt.Errorf("running git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}
