package report

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// A Target is a Run at an API server, and the pod that writes its status.
type Target struct {
	URL    string // of the API server
	Run    task.Run
	PodUID string
	// Token is called before each request, because tokens rotate.
	Token  func() (string, error)
	Client *http.Client
}

// requestTimeout bounds one request; the timeout of the API server is a minute.
const requestTimeout = 10 * time.Second

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 64 << 10

// InCluster returns the Target of a runner in its pod. The directory, task.TokenDir,
// holds the token and the certificate of the API server.
func InCluster(run task.Run, dir string) (Target, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	uid := os.Getenv(task.EnvPodUID)
	if host == "" || port == "" || uid == "" {
		return Target{}, fmt.Errorf("finding the API server: KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT and %s must be set", task.EnvPodUID)
	}
	ca, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		return Target{}, fmt.Errorf("reading the certificate of the API server: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return Target{}, fmt.Errorf("reading the certificate of the API server: no certificate in %s/ca.crt", dir)
	}
	return Target{
		URL: "https://" + net.JoinHostPort(host, port), Run: run, PodUID: uid,
		Token: tokenFile(filepath.Join(dir, "token")),
		// No proxy: the API server is in the cluster.
		Client: &http.Client{Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			IdleConnTimeout: 90 * time.Second,
		}},
	}, nil
}

func tokenFile(path string) func() (string, error) {
	return func() (string, error) {
		data, err := os.ReadFile(path)
		return strings.TrimSpace(string(data)), err
	}
}

// An answer is a response of the API server.
type answer struct {
	status     int
	body       string
	retryAfter time.Duration
}

// An operation of a JSON Patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// patch sends p once, if the status has the attempt of this pod.
func (t Target) patch(ctx context.Context, p task.Progress) (answer, error) {
	return t.send(ctx,
		operation{Op: "test", Path: attemptPath, Value: t.PodUID},
		operation{Op: "add", Path: "/status/progress", Value: p},
	)
}

// patchFirst sends p once, if the status has no attempt yet.
func (t Target) patchFirst(ctx context.Context, p task.Progress) (answer, error) {
	return t.send(ctx,
		operation{Op: "test", Path: "/metadata/uid", Value: t.Run.UID},
		operation{Op: "test", Path: "/status/attempt", Value: nil},
		operation{Op: "add", Path: "/status/progress", Value: p},
	)
}

// otherVersion is a resource version that no Run has.
const otherVersion = "1"

// check asks once whether this pod is the given attempt of a Run that has not ended. It
// writes nothing: the answer is a success if only the resource version of its patch is wrong.
// A runner may not read Runs, because it could then read those of others.
func (t Target) check(ctx context.Context, attempt int) (answer, error) {
	ans, err := t.send(ctx,
		operation{Op: "test", Path: attemptPath, Value: t.PodUID},
		operation{Op: "test", Path: "/status/attempt/number", Value: attempt},
		operation{Op: "test", Path: "/status/completionTime", Value: nil},
		operation{Op: "replace", Path: "/metadata/resourceVersion", Value: otherVersion},
	)
	if ans.status == http.StatusConflict { // which is checked after the tests of the patch
		ans.status = http.StatusOK
	}
	return ans, err
}

// send sends a patch of the Run's status once.
func (t Target) send(ctx context.Context, patch ...operation) (answer, error) {
	body, err := json.Marshal(patch)
	if err != nil {
		return answer{}, fmt.Errorf("encoding progress: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := t.request(ctx, body)
	if err != nil {
		return answer{}, err
	}
	resp, err := t.Client.Do(req)
	if err != nil {
		return answer{}, fmt.Errorf("patching the Run's status: %w", err)
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil && classify(resp.StatusCode, "") != accepted {
		return answer{}, fmt.Errorf("reading the answer of the API server: %w", err)
	}
	return answer{status: resp.StatusCode, body: string(said), retryAfter: retryAfter(resp.Header)}, nil
}

func (t Target) request(ctx context.Context, body []byte) (*http.Request, error) {
	path := fmt.Sprintf("%s/apis/deckhand.dev/v1alpha1/namespaces/%s/runs/%s/status",
		t.URL, url.PathEscape(t.Run.Namespace), url.PathEscape(t.Run.Name))
	req, err := http.NewRequestWithContext(ctx, http.MethodPatch, path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("making a request of the API server: %w", err)
	}
	token, err := t.Token()
	if err != nil {
		return nil, fmt.Errorf("reading the runner's token: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json-patch+json")
	// The Run itself is not needed: its metadata is the smallest answer.
	req.Header.Set("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json")
	req.Header.Set("User-Agent", "deckhand-runner")
	return req, nil
}
