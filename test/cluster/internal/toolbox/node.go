package toolbox

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// modules is the directory of Node.js packages in the image.
const modules = "/opt/mcp"

// node returns the layer of this machine's Node.js and of packages that npm installed
// in a folder.
func node(ctx context.Context, installed string) (layer, error) {
	program, err := output(exec.CommandContext(ctx, "node", "--print", "process.execPath"))
	if err != nil {
		return layer{}, err
	}
	version, err := output(exec.CommandContext(ctx, program, "--version"))
	if err != nil {
		return layer{}, err
	}
	lock, err := os.ReadFile(filepath.Join(installed, "package-lock.json"))
	if err != nil {
		return layer{}, fmt.Errorf("reading which packages are installed: %w", err)
	}
	return layer{
		name:   "node",
		inputs: []string{"1", program, version, fmt.Sprintf("%x", sha256.Sum256(lock))},
		fill: func(ctx context.Context, root string) error {
			err := copyTree(ctx, filepath.Dir(program), filepath.Join(root, "usr/local/bin"), filepath.Base(program))
			if err != nil {
				return err
			}
			return copyTree(ctx, installed, filepath.Join(root, modules), "--exclude=*.d.ts", "--exclude=*.map", "node_modules")
		},
	}, nil
}
