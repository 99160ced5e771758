package web

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/internal/shared/weburl"
)

// hosts are the allowed hosts in the canonical form of package weburl. If it is
// empty all are allowed.
type hosts []string

// readHosts validates a list of hosts and returns it in canonical form.
func readHosts(list []string) (hosts, error) {
	var all hosts
	for _, entry := range list {
		suffix, wild := strings.CutPrefix(entry, "*.")
		name, err := weburl.Host(strings.Trim(suffix, "[]"))
		if err != nil {
			return nil, fmt.Errorf("%q is no host: write one such as api.example.com, or *.example.com for those below it, without scheme, port and path", entry)
		}
		if wild {
			name = "*." + name
		}
		all = append(all, name)
	}
	return all, nil
}

// A hostError means that a host is not allowed.
type hostError struct {
	host    string
	allowed hosts
}

func (e *hostError) Error() string {
	return fmt.Sprintf("this tool may not reach the host %s", e.host)
}

// check returns a hostError if a canonical name is not allowed.
func (h hosts) check(name string) error {
	matches := func(entry string) bool {
		if suffix, wild := strings.CutPrefix(entry, "*"); wild {
			return len(name) > len(suffix) && strings.HasSuffix(name, suffix)
		}
		return entry == name
	}
	if len(h) > 0 && !slices.ContainsFunc(h, matches) {
		return &hostError{host: name, allowed: h}
	}
	return nil
}

// A requestError means that the arguments are not a valid request.
type requestError struct{ problem string }

func (e *requestError) Error() string { return e.problem }

// target parses and checks a URL, and returns it in canonical form.
func (h hosts) target(raw string) (*url.URL, error) {
	u, err := weburl.Parse(raw)
	if err != nil {
		return nil, &requestError{err.Error()}
	}
	return u, h.check(u.Hostname())
}

// admit converts the target of a redirect to canonical form and checks its host.
func (h hosts) admit(u *url.URL) error {
	if err := weburl.Canonicalize(u); err != nil {
		return &requestError{err.Error()}
	}
	return h.check(u.Hostname())
}
