package git

import (
	"net"
	"net/url"
	"regexp"
	"strings"
	"unicode"
)

// A location is where a repository is.
type location struct {
	scheme string // http, https or ssh
	host   string // with its port, where one was given
	user   string // empty where none was given
	path   string // as it stands in the URL; of ssh: as the server's command gets it
	text   string // for people and for the workspace; without a password
}

const urlForms = "use https://host/path, http://host/path, ssh://user@host/path or user@host:path"

// scp is ssh's short form, user@host:path.
var scp = regexp.MustCompile(`^([A-Za-z0-9._-]+)@([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]):([^:].*)$`)

// Name is the URL of a repository as Remote.URL has it: two that are written in
// another way may have the same.
func Name(raw string) (string, error) {
	at, err := parseURL(raw)
	return at.text, err
}

func parseURL(raw string) (location, error) {
	if strings.ContainsFunc(raw, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return location{}, Refused("The URL of the git repository has a space or a control character in it; remove it.")
	}
	if m := scp.FindStringSubmatch(raw); m != nil && !strings.Contains(raw, "://") {
		return validate(location{scheme: "ssh", user: m[1], host: m[2], path: m[3], text: raw})
	}
	u, err := url.Parse(raw)
	if err != nil { // its text has the URL, and so perhaps a password
		return location{}, Refused("The URL of the git repository cannot be read: %s.", urlForms)
	}
	switch scheme := strings.ToLower(u.Scheme); scheme {
	case "http", "https", "ssh":
		return fromURL(u, scheme)
	case "":
		return location{}, Refused("The URL of the git repository names no scheme: %s.", urlForms)
	default:
		return location{}, Refused("The URL of the git repository begins with %q, which is not allowed: %s.", printable(scheme), urlForms)
	}
}

func fromURL(u *url.URL, scheme string) (location, error) {
	if _, has := u.User.Password(); has {
		return location{}, Refused("The URL of the git repository has a password in it, which every reader of the Agent can see: remove it and put it into a Secret of type kubernetes.io/basic-auth.")
	}
	if u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" {
		return location{}, Refused("The URL of the git repository has more in it than a host and a path: %s.", urlForms)
	}
	l := location{scheme: scheme, host: u.Host, user: u.User.Username(), path: strings.TrimRight(u.EscapedPath(), "/")}
	shown := url.URL{Scheme: scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	if scheme == "ssh" {
		l.path = strings.TrimPrefix(u.Path, "/~") // ssh://host/~user/x is the shell's ~user/x
		if l.path != u.Path {
			l.path = "~" + l.path
		}
		shown.User = u.User
	}
	l.text = shown.String()
	return validate(l)
}

// validate refuses a location without a host or path, and one that the command on the server
// could parse as an option.
func validate(l location) (location, error) {
	if name, _, _ := strings.Cut(l.host, ":"); name == "" || strings.Trim(l.path, "/") == "" {
		return location{}, Refused("The URL of the git repository names no host or no path: %s.", urlForms)
	}
	if strings.HasPrefix(l.path, "-") || strings.HasPrefix(l.host, "-") {
		return location{}, Refused("The URL of the git repository has a host or a path that begins with \"-\"; that is an option, not a name.")
	}
	return l, nil
}

// address returns the host and port for ssh.
func (l location) address() string {
	if _, _, err := net.SplitHostPort(l.host); err == nil {
		return l.host
	}
	return net.JoinHostPort(strings.Trim(l.host, "[]"), "22")
}
