package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// The protocol's own suite runs a client, gives it the URL of a server and looks
// at what it does. The client is this test, started again.
const (
	envClient   = "DECKHAND_MCP_CONFORMANCE_CLIENT"
	envScenario = "MCP_CONFORMANCE_SCENARIO"
	envContext  = "MCP_CONFORMANCE_CONTEXT"
)

func TestMain(m *testing.M) {
	if os.Getenv(envClient) == "" {
		os.Exit(m.Run())
	}
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
	defer cancel()
	if err := client(ctx, os.Args[len(os.Args)-1], os.Getenv(envScenario)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// client does what a scenario wants: begin, list, and call what there is.
func client(ctx context.Context, to, scenario string) error {
	u, err := url.Parse(to)
	if err != nil {
		return err
	}
	u.Host = alias(u.Host)
	var d net.Dialer
	o := Options{
		Toolset: task.Toolset{Name: "conformance", HTTP: &task.HTTPServer{URL: u.String()}},
		Client: &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return d.DialContext(ctx, network, strings.Replace(addr, "machine.test", "localhost", 1))
		}}},
		Log: func(text string) { fmt.Fprintln(os.Stderr, text) },
	}
	if strings.HasPrefix(scenario, "auth/") {
		if err := credentials(ctx, &o, to); err != nil {
			return err
		}
	}
	s, err := Connect(ctx, o)
	if err != nil {
		return err
	}
	defer s.Close()
	tools, err := s.Tools(nil, nil)
	if err != nil {
		return err
	}
	for _, one := range tools {
		args := `{}`
		if strings.HasSuffix(one.Name, "add_numbers") {
			args = `{"a":5,"b":3}`
		}
		result, err := one.Call(ctx, tool.Call{Args: json.RawMessage(args), Emit: func(string) {}})
		if err != nil {
			return err
		}
		fmt.Fprintln(os.Stderr, one.Name, result.Render())
	}
	return nil
}

// alias is another name of this machine, which is no place for a Toolset to name.
func alias(host string) string { return strings.Replace(host, "localhost", "machine.test", 1) }

// credentials finds out what a Toolset would say: where tokens are got.
func credentials(ctx context.Context, o *Options, to string) error {
	var given struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	if err := json.Unmarshal([]byte(os.Getenv(envContext)), &given); err != nil {
		return err
	}
	var resource struct {
		Servers []string `json:"authorization_servers"`
	}
	u, err := url.Parse(to)
	if err != nil {
		return err
	}
	if err := get(ctx, u.Scheme+"://"+u.Host+"/.well-known/oauth-protected-resource"+u.Path, &resource); err != nil {
		return err
	}
	var server struct {
		Token string `json:"token_endpoint"`
	}
	if err := get(ctx, resource.Servers[0]+"/.well-known/oauth-authorization-server", &server); err != nil {
		return err
	}
	o.Toolset.HTTP.Auth = &task.Auth{Type: task.AuthOAuth, Secret: "x", TokenURL: alias(server.Token)}
	o.Key = func(k task.SecretKey) (string, error) {
		return map[string]string{"client-id": given.ID, "client-secret": given.Secret}[k.Key], nil
	}
	return nil
}

func get(ctx context.Context, from string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return json.NewDecoder(resp.Body).Decode(into)
}

// modules is where the public servers and the suite are installed.
func modules(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("MCP_MODULES")
	if dir == "" {
		t.Skip("MCP_MODULES is not set; make test sets it to where npm has installed test/mcp")
	}
	if _, err := os.Stat(filepath.Join(dir, "@modelcontextprotocol")); err != nil {
		t.Skipf("no MCP servers in %s; npm ci in test/mcp installs them", dir)
	}
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("there is no node")
	}
	return dir
}

// The scenarios that are not here are those of flows in which a person logs in
// with a browser, of keys that sign, and of forms that a person fills in: an
// agent has nobody there for that.
func TestConformance(t *testing.T) {
	dir := modules(t)
	for _, scenario := range []string{"initialize", "tools_call", "sse-retry", "auth/client-credentials-basic"} {
		t.Run(scenario, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "node", filepath.Join(dir, "@modelcontextprotocol", "conformance", "dist", "index.js"),
				"client", "--command", os.Args[0], "--scenario", scenario, "--verbose")
			cmd.Env = append(os.Environ(), envClient+"=1")
			cmd.Dir = t.TempDir()
			out, err := cmd.CombinedOutput()
			if !strings.Contains(string(out), ", 0 failed,") || strings.Contains(string(out), "CLIENT EXITED WITH ERROR") { // warnings are of a slow machine
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
