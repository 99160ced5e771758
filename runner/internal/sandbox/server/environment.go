//go:build linux

package server

import (
	"bufio"
	"cmp"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// standardPath is the default PATH.
const standardPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Variables that Kubernetes adds to the environment of every container: addresses
// of Services, in two forms. Commands do not get them.
var (
	serviceName = regexp.MustCompile(`^(KUBERNETES_.*|DECKHAND_.*|[A-Z0-9_]+_SERVICE_HOST|[A-Z0-9_]+_SERVICE_PORT(_.*)?|[A-Z0-9_]+_PORT_[0-9]+_(TCP|UDP|SCTP)(_.*)?)$`)
	servicePort = regexp.MustCompile(`^[A-Z0-9_]+_PORT=(tcp|udp|sctp)://`)
)

// baseEnvironment is the environment that all commands have. An empty proxy means
// that there is none.
func baseEnvironment(o Options, proxy string) []string {
	env := []string{"PATH=" + standardPath}
	for _, entry := range o.Environ {
		name, _, ok := strings.Cut(entry, "=")
		if ok && !serviceName.MatchString(name) && !servicePort.MatchString(entry) {
			env = append(env, entry)
		}
	}
	env = append(withUser(env, os.Getuid(), passwdFile), "HOME="+o.Home, "TMPDIR="+o.Temp)
	if !o.Open {
		env = append(trustWorkspace(o.Workspace), env...)
	}
	if proxy == "" {
		return env
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		env = append(env, name+"=http://"+proxy)
	}
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		env = append(env, name+"=localhost,127.0.0.1,::1")
	}
	return env
}

// The names of the user of commands, where the image and sandbox.env do not set them.
const (
	passwdFile  = "/etc/passwd"
	defaultUser = "agent"
	// maxPasswd is how much of the file is read, in bytes.
	maxPasswd = 1 << 20
)

// withUser returns an environment with USER and LOGNAME, as a login sets them, where they
// are not set. The image may not know the user: then programs that ask for its name fail
// without the variables.
func withUser(environ []string, uid int, passwd string) []string {
	user, login := lastOf(environ, "USER"), lastOf(environ, "LOGNAME")
	name := cmp.Or(user, login, userName(uid, passwd), defaultUser)
	return append(environ, "USER="+cmp.Or(user, name), "LOGNAME="+cmp.Or(login, name))
}

// lastOf returns the last value of a variable.
func lastOf(environ []string, name string) (value string) {
	for _, entry := range environ {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			value = v
		}
	}
	return value
}

// userName returns the name of a user in the image; empty: it has none.
func userName(uid int, passwd string) string {
	f, err := os.Open(passwd)
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(io.LimitReader(f, maxPasswd))
	for lines.Scan() {
		fields := strings.Split(lines.Text(), ":")
		if len(fields) > 2 && fields[2] == strconv.Itoa(uid) && !strings.ContainsFunc(fields[0], unicode.IsControl) {
			return fields[0]
		}
	}
	return ""
}

// trustWorkspace lets git work in the workspace, whose directory root owns if it is
// a volume. It is not set for an open sandbox, whose container may hold secrets:
// commands can write the configuration of a repository, which runs programs.
func trustWorkspace(workspace string) []string {
	return []string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=" + workspace}
}

// commandEnvironment is the complete environment of one command. The last value of
// a variable is used.
func commandEnvironment(base []string, id string, wanted map[string]string) []string {
	last := map[string]string{}
	var order []string
	set := func(name, value string) {
		if _, again := last[name]; !again {
			order = append(order, name)
		}
		last[name] = value
	}
	for _, entry := range base {
		name, value, _ := strings.Cut(entry, "=")
		set(name, value)
	}
	if id != "" {
		set("DECKHAND_REQUEST", id)
	}
	for name, value := range wanted {
		set(name, value)
	}
	env := make([]string, len(order))
	for i, name := range order {
		env[i] = name + "=" + last[name]
	}
	return env
}
