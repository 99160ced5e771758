package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/spf13/pflag"

	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/runflags"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
)

// Flags are the flags for the machine on which an Agent runs.
type Flags struct {
	dir        string
	endpoints  []string
	secrets    []string
	modelKey   string
	unconfined bool
	source     string // of --continue; lastRun: the last one
	continues  *pflag.Flag
	step       int64
}

// Bind adds the flags. when is the beginning of their descriptions. In a program that also has other Runs, it describes
// when the flags have an effect.
func (f *Flags) Bind(flags *pflag.FlagSet, when string) {
	flags.StringVarP(&f.dir, "directory", "C", ".", when+"the directory that the agent works in")
	flags.StringArrayVar(&f.endpoints, "endpoint", nil, when+"NAME=URL: the endpoint of the Model NAME, in place of its own")
	flags.StringArrayVar(&f.secrets, "secret", nil, when+"NAME/KEY=VARIABLE: the environment variable with a key of a Secret")
	flags.StringVar(&f.modelKey, "model-key", "", when+"the environment variable with the key of each Model whose Secret is not in the files")
	flags.BoolVar(&f.unconfined, "unconfined", false, when+"do not confine commands of the agent: they may do all that you may do")
	flags.StringVar(&f.source, "continue", "", when+"continue the session of the local Run `NAME`; without a name, of the last one in the directory")
	f.continues = flags.Lookup("continue")
	f.continues.NoOptDefVal = lastRun
	flags.Int64Var(&f.step, "step", 0, when+"with --continue, only up to the step with this number, as in s14")
}

// AreGiven reports whether the command line has one of the flags.
func (f *Flags) AreGiven() bool {
	return f.dir != "." || len(f.endpoints) > 0 || len(f.secrets) > 0 || f.modelKey != "" || f.unconfined || f.isContinue() || f.step != 0
}

// isContinue reports whether the command line has --continue.
func (f *Flags) isContinue() bool { return f.continues != nil && f.continues.Changed }

// Versions of Landlock, with the kernels that have them.
const (
	landlockFiles   = 3 // Linux 6.2: before, commands could empty any file
	landlockSignals = 6 // Linux 6.12
)

// A Run runs an Agent on this machine.
type Run struct {
	*terminal.Streams

	Program     string // its name as users call it: who denies calls that no user was asked about
	Description runflags.Description
	Flags       Flags
	Shown       terminal.ConversationFlags
}

// Do runs the Agent. If it does not succeed, the error is an exit.EndedError with how it ended.
func (r Run) Do(ctx context.Context) error {
	if err := r.checkFlags(); err != nil {
		return err
	}
	dir, err := workingDirectory(r.Flags.dir)
	if err != nil {
		return err
	}
	source, err := r.source(dir)
	if err != nil {
		return err
	}
	work, err := r.input(ctx, dir)
	if err != nil {
		return err
	}
	if source != nil {
		work.continues(*source, r.Flags.step)
	}
	commands := snapshot.NeedsSandbox(work.Snapshot)
	confinement, err := r.confinement(commands, dir, thisKernel())
	if err != nil {
		return err
	}
	program, err := runnerProgram()
	if err != nil {
		return err
	}
	place, err := newPlace(work.Task.Run.Name)
	if err != nil {
		return err
	}
	defer place.close()
	if err := place.begin(memo{UID: work.Task.Run.UID, Directory: dir}, source); err != nil {
		return err
	}
	notes := append(work.notes, confinement...)
	if !isWritable(dir) {
		notes = append(notes, dir+" is not writable for you: the agent can only read.")
	}
	for _, note := range notes {
		fmt.Fprintln(r.Err, untrusted.Line(note, 1024))
	}
	return r.execute(ctx, process{program: program, dir: dir, place: place, commands: commands, unconfined: r.Flags.unconfined}, work)
}

func (r Run) checkFlags() error {
	switch {
	case runtime.GOOS != "linux":
		return errNotOnLinux
	case len(r.Description.Files) == 0:
		return exit.Usagef("name the files with the manifests of the Agent and its Model with -f")
	}
	return nil
}

// workingDirectory returns the real path of a directory. That an agent may change all that
// the user has is never meant.
func workingDirectory(path string) (string, error) {
	dir, err := filepath.Abs(path)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", exit.Usagef("-C %s does not exist: create it, or name the directory of the work", path)
	case err != nil:
		return "", fmt.Errorf("%w: name the directory of the work with -C", err)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", exit.Usagef("-C %s is not a directory", path)
	}
	home, err := os.UserHomeDir()
	if dir == "/" || err == nil && contains(dir, home) {
		return "", exit.Usagef("-C %s has your home directory in it, which the agent could change: name a directory with the work only", dir)
	}
	if system := systemDirectory(dir); system != "" && !isServiceHome(home, dir) {
		return "", exit.Usagef("-C %s is in %s, or has it in it, which belongs to the system: name a directory with the work only", path, system)
	}
	state, err := stateDir()
	if err == nil && contains(dir, state) || contains(dir, os.TempDir()) {
		return "", exit.Usagef("-C %s has the directory of journals %s or of temporary files %s in it, where the agent could answer its own requests: name a directory with the work only", dir, state, os.TempDir())
	}
	return dir, nil
}

// contains reports whether a path is dir, or below it. The end of the path need not exist.
func contains(dir, path string) bool {
	for at := filepath.Clean(path); ; at = filepath.Dir(at) {
		if target, err := filepath.EvalSymlinks(at); err == nil {
			rest, err := filepath.Rel(at, filepath.Clean(path))
			if err != nil {
				return true // unknown is not allowed
			}
			in, err := filepath.Rel(dir, filepath.Join(target, rest))
			return err == nil && filepath.IsLocal(in)
		}
		if at == filepath.Dir(at) {
			return true
		}
	}
}

// A kernel has the properties of the running kernel that decide how commands are confined.
type kernel struct {
	// landlock is the version of Landlock; 0: none.
	landlock int
	// closed means that a program may not read the memory of its child processes, so that the sandbox cannot see the
	// address to which a command connects.
	closed bool
}

// confinement returns what the user must know about the confinement of commands, or why they cannot be confined.
func (r Run) confinement(commands bool, dir string, k kernel) ([]string, error) {
	switch {
	case !commands:
		return nil, nil
	case r.Flags.unconfined:
		return []string{"Commands of the agent are NOT confined: they can read and change all that you can, your keys included."}, nil
	case k.landlock < landlockFiles:
		return nil, errors.New("this kernel cannot confine commands of the agent: they could read and change all that you can. It needs Landlock, which Linux has with all that is needed from 6.2 on. Use another machine, or --unconfined if you accept this")
	}
	notes := []string{"Commands of the agent are confined: they change " + dir + " and a temporary home only, read these and the directories of the system, and connect only to the proxy, for the hosts of spec.sandbox.egress.hosts."}
	if k.closed {
		notes = append(notes, "They have no network at all, because this kernel does not let the sandbox see where they connect to: kernel.yama.ptrace_scope is 2 or 3. Set it to 1 if they need the hosts of spec.sandbox.egress.hosts.")
	}
	if k.landlock < landlockSignals {
		notes = append(notes, "NOT confined: they can end your other programs (this kernel is before Linux 6.12).")
	}
	return append(notes, "NOT confined: memory and CPU. The names and arguments of your processes can be read, and modes, owners and times of your files changed."), nil
}

// runnerProgram finds the program that runs the agent: beside this one, or in PATH.
func runnerProgram() (string, error) {
	const name = "runner-local"
	if self, err := os.Executable(); err == nil {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(self), name)); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("the program %s, which runs the agent, is neither beside this program nor in PATH: copy it there from the same release, or build it with go build ./cmd/%s", name, name)
	}
	return filepath.Abs(path)
}
