//go:build linux

package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheUserOfCommandsHasAName(t *testing.T) {
	const passwd = "# users\nroot:x:0:0:root:/root:/bin/sh\nbroken\nnode:x:1000:1000::/home/node:/bin/sh\nother:x:1000:1000::/:/bin/sh\n:x:1001:0::/:\n"
	cases := map[string]struct {
		environ      []string
		uid          int
		passwd       string
		user, logged string
	}{
		"a user that the image does not know": {nil, 1000700001, passwd, "agent", "agent"},
		"a user that the image knows":         {nil, 1000, passwd, "node", "node"},
		"root":                                {nil, 0, passwd, "root", "root"},
		"a user without a name":               {nil, 1001, passwd, "agent", "agent"},
		"an image without users":              {nil, 0, "", "agent", "agent"},
		"a user that the image names":         {[]string{"USER=app"}, 1000, passwd, "app", "app"},
		"a login name that the image names":   {[]string{"LOGNAME=app"}, 1000, passwd, "app", "app"},
		"both":                                {[]string{"USER=a", "LOGNAME=b"}, 1000, passwd, "a", "b"},
		"an empty variable":                   {[]string{"LOGNAME="}, 1000, passwd, "node", "node"},
		"a variable that is set twice":        {[]string{"USER=a", "USER=b"}, 1000, passwd, "b", "b"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "passwd")
			if tc.passwd != "" {
				if err := os.WriteFile(file, []byte(tc.passwd), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			base := withUser(append([]string{"PATH=/bin"}, tc.environ...), tc.uid, file)
			env := strings.Join(commandEnvironment(base, "", nil), "\n") + "\n"
			if !strings.Contains(env, "\nUSER="+tc.user+"\n") || !strings.Contains(env, "\nLOGNAME="+tc.logged+"\n") {
				t.Errorf("the environment is\n%s", env)
			}
		})
	}
}

func TestACommandMayNameItsUser(t *testing.T) {
	base := baseEnvironment(Options{Environ: []string{"A=b"}}, "")
	env := strings.Join(commandEnvironment(base, "", map[string]string{"USER": "own"}), "\n")
	if !strings.Contains(env, "USER=own") || !strings.Contains(env, "LOGNAME=") {
		t.Errorf("the environment is\n%s", env)
	}
}
