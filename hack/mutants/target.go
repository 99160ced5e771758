package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A target is a package, or the folder of the admission policies, and the nearest tests.
type target struct {
	dir   string
	tests []string // packages besides its own
}

const policies = "charts/deckhand/files/policy"

// targets are the packages that decide.
var targets = []target{
	{"internal/shared/policy", []string{"internal/cli/lint"}},
	{"internal/revision/policylint", nil},
	{"internal/shared/policy/shell", []string{"internal/shared/policy"}},
	{"internal/run/decisions", []string{"internal/controller/decision"}},
	{"internal/run/children", []string{"internal/controller/workflowrun"}},
	{"internal/run/continuing", []string{"internal/controller/run"}},
	{"internal/run/egress", nil},
	{"internal/run/runnerpod", nil},
	{"internal/shared/schema", nil},
	{"internal/shared/pattern", nil},
	{"internal/revision/specsize", nil},
	{"internal/run/objectcache", nil},
	{"internal/controller/run", nil},
	{"internal/controller/workflowrun", nil},
	{"runner/internal/redact", nil},
	{"runner/internal/journal", nil},
	{"runner/internal/state", []string{"runner/internal/engine"}},
	{"runner/internal/engine/approval", []string{"runner/internal/engine"}},
	{"runner/internal/engine/meter", []string{"runner/internal/engine"}},
	{"runner/internal/engine/toolcall", []string{"runner/internal/engine"}},
	{"runner/internal/sandbox/egress", nil},
	{"runner/internal/workspace/git", []string{"runner/internal/workspace"}},
	{policies, []string{"test/policy"}},
}

// faults returns the faults of a target in the order of a seed.
func (t target) faults(seed string) ([]fault, error) {
	pattern, read := "*.go", faultsOfFile
	if t.dir == policies {
		pattern, read = "*.yaml", faultsOfPolicy
	}
	files, err := filepath.Glob(filepath.Join(t.dir, pattern))
	if err != nil || len(files) == 0 {
		return nil, errors.Join(err, errors.New("no files"))
	}
	var all []fault
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		some, err := read(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, some...)
	}
	hash := fnv.New64a()
	hash.Write([]byte(seed + " " + t.dir))
	dice := rand.New(rand.NewPCG(hash.Sum64(), 0)) // #nosec G404 -- it chooses what is tested
	dice.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all, nil
}

// A verdict is the result of the tests with a fault.
type verdict int

const (
	survived verdict = iota
	noticed
	timedOut // no test failed, but one did not end
	untested // it is no Go program, or its tests did not begin
)

// verdictOf reads the output of failed tests. A test that did not end also detects a fault, but the machine may only
// have been slow. If no test failed or panicked, none started, because an API server did not start.
func verdictOf(output string) verdict {
	switch {
	case strings.Contains(output, "--- FAIL: "):
		return noticed
	case strings.Contains(output, "panic: test timed out after "):
		return timedOut
	case strings.Contains(output, "panic: "), strings.Contains(output, "fatal error: "):
		return noticed
	}
	return untested
}

// try runs the tests with a fault, each package for at most the timeout. The nearest tests are first,
// because they notice most faults and the others take longer.
func (t target) try(ctx context.Context, f fault, timeout time.Duration) (verdict, error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return 0, fmt.Errorf("making a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	text, err := os.ReadFile(f.file)
	if err != nil {
		return 0, fmt.Errorf("reading a file: %w", err)
	}
	arguments, env, packages := []string{"test", "-count=1", "-vet=off", "-short", "-failfast", "-timeout=" + timeout.String()}, os.Environ(), t.tests
	if t.dir == policies {
		if err := os.CopyFS(dir, os.DirFS(filepath.Dir(policies))); err != nil {
			return 0, fmt.Errorf("copying the manifests: %w", err)
		}
		env = append(env, "DECKHAND_MANIFESTS="+dir)
		err = os.WriteFile(filepath.Join(dir, filepath.Base(policies), filepath.Base(f.file)), f.apply(text), 0o600)
	} else {
		err = writeOverlay(dir, f, text)
		arguments, packages = append(arguments, "-overlay="+filepath.Join(dir, "overlay.json")), append([]string{t.dir}, t.tests...)
	}
	if err != nil {
		return 0, err
	}
	for _, one := range packages {
		if v, err := runTests(ctx, env, append(slices.Clone(arguments), "./"+one)); err != nil || v != survived {
			return v, err
		}
	}
	return survived, nil
}

// runTests runs the go command.
func runTests(ctx context.Context, env, arguments []string) (verdict, error) {
	c := exec.CommandContext(ctx, "go", arguments...)
	c.Env = env
	out, err := c.CombinedOutput()
	switch _, exited := errors.AsType[*exec.ExitError](err); {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case err == nil:
		return survived, nil
	case !exited:
		return 0, fmt.Errorf("running go: %w", err)
	}
	return verdictOf(string(out)), nil
}

// writeOverlay writes the changed file and the overlay that replaces the original in the build.
func writeOverlay(dir string, f fault, text []byte) error {
	changed := filepath.Join(dir, "changed.go")
	original, err := filepath.Abs(f.file)
	if err != nil {
		return fmt.Errorf("finding the file: %w", err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		return fmt.Errorf("encoding the overlay: %w", err)
	}
	return errors.Join(os.WriteFile(changed, f.apply(text), 0o600), os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600))
}

// weaker are operators of CEL and what a fault puts in their place.
var weaker = [][2]string{{"&&", "||"}, {"||", "&&"}, {"==", "!="}, {"!=", "=="}, {".all(", ".exists("}, {".exists(", ".all("}}

// faultsOfPolicy returns the faults that the rules of an admission policy may have.
func faultsOfPolicy(path string) ([]fault, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading a file: %w", err)
	}
	text, policy := string(data), ""
	var out []fault
	begin := 0
	for line := range strings.Lines(text) {
		if name, is := strings.CutPrefix(line, "  name: "); is {
			policy = strings.TrimSpace(name)
		}
		if !notARule.MatchString(line) {
			out = append(out, faultsOfRule(fault{file: filepath.ToSlash(path), function: policy, line: strings.TrimSpace(line), begin: begin}, line)...)
		}
		begin += len(line)
	}
	return out, nil
}

// notARule matches a comment and a message.
var notARule = regexp.MustCompile(`^#|message(Expression)?:`)

// faultsOfRule returns the faults of a line that begins where a fault does.
func faultsOfRule(at fault, line string) []fault {
	var out []fault
	for _, pair := range weaker {
		parts := strings.Split(line, pair[0])
		i := at.begin
		for _, part := range parts[:len(parts)-1] {
			f := at
			f.begin, f.end, f.old, f.new = i+len(part), i+len(part)+len(pair[0]), pair[0], pair[1]
			out, i = append(out, f), f.end
		}
	}
	return out
}
