package apitest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// A Killable is a Server of one test, whose API server can be killed and started again. Its etcd keeps running.
type Killable struct {
	*Server
	arguments []string // of the API server's process
	pid       int
}

// NewKillable starts an API server that ends with the test. It has no watch cache, so that the
// history of objects survives its end, and CheckInvariants can read it.
func NewKillable(t *testing.T) *Killable {
	t.Helper()
	env, s, err := launch(func(flags *envtest.Arguments) { flags.Set("watch-cache", "false") })
	if env != nil {
		t.Cleanup(func() { _ = env.Stop() }) // the process ends anyway
	}
	if err != nil {
		t.Fatal(err)
	}
	k := &Killable{Server: s}
	if k.pid, k.arguments, err = serving(k.host()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(k.pid, syscall.SIGKILL) })
	return k
}

// serving finds the process of the API server with an address.
func serving(host string) (int, []string, error) {
	_, port, err := net.SplitHostPort(host)
	if err != nil {
		return 0, nil, err
	}
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, nil, err
	}
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(line, []byte("\x00--secure-port="+port+"\x00")) {
			continue
		}
		var arguments []string
		for word := range bytes.SplitSeq(bytes.TrimSuffix(line, []byte{0}), []byte{0}) {
			arguments = append(arguments, string(word))
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		return pid, arguments, err
	}
	return 0, nil, fmt.Errorf("no process serves port %s", port)
}

// URL returns the address of the API server.
func (k *Killable) URL() string {
	return "https://" + k.host()
}

func (k *Killable) host() string {
	return strings.Trim(strings.TrimPrefix(k.Config.Host, "https://"), "/")
}

// Kill kills the API server: connections break, new ones are refused.
func (k *Killable) Kill(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(k.pid, syscall.SIGKILL); err != nil {
		t.Fatalf("killing the API server: %v", err)
	}
	if err := k.await(t.Context(), false); err != nil {
		t.Fatalf("the API server still answers: %v", err)
	}
}

// maxStarts is how often an API server is started that ends before it is ready: on a busy
// machine it may not get what it needs from etcd in time.
const maxStarts = 5

// Start starts it again on its old port, with its old keys, and returns when it is
// ready.
func (k *Killable) Start(t *testing.T) {
	t.Helper()
	var err error
	for range maxStarts {
		if err = k.startOnce(t.Context()); err == nil {
			return
		}
	}
	t.Fatalf("starting the API server: %v", err)
}

// startOnce returns an error if the API server ends, or is not ready in time.
func (k *Killable) startOnce(ctx context.Context) error {
	cmd := exec.Command(k.arguments[0], k.arguments[1:]...) //nolint:noctx // it outlives the context of the test until it is killed
	if err := cmd.Start(); err != nil {
		return err
	}
	k.pid = cmd.Process.Pid
	ctx, ended := context.WithCancelCause(ctx)
	go func() {
		ended(fmt.Errorf("it ended before it was ready: %w", cmp.Or(cmd.Wait(), errors.New("exit code 0"))))
	}()
	err := k.await(ctx, true)
	if err != nil {
		_ = cmd.Process.Kill() // it may have ended
		return errors.Join(err, context.Cause(ctx))
	}
	return nil
}

// await waits until the API server is ready, or answers no more.
func (k *Killable) await(ctx context.Context, ready bool) error {
	client, err := rest.HTTPClientFor(k.Config)
	if err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, k.URL()+"/readyz", nil)
		if err != nil {
			return false, err
		}
		response, err := client.Do(request)
		if err != nil {
			return !ready, nil
		}
		defer response.Body.Close()
		return ready && response.StatusCode == http.StatusOK, nil
	})
}
