package web

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/idna"
)

// maxURL bounds the addresses that are read; no server takes longer ones.
const maxURL = 8 << 10

// Hosts are those that may be reached, as they were configured, in lower case;
// none: every one.
type hosts []string

// readHosts checks a list of hosts and puts them in the form that is compared.
func readHosts(list []string) (hosts, error) {
	var all hosts
	for _, entry := range list {
		suffix, wild := strings.CutPrefix(entry, "*.")
		name, err := canonical(strings.Trim(suffix, "[]"))
		if err != nil || strings.ContainsAny(name, "*/@?# ") || !isAddress(name) && strings.Contains(name, ":") {
			return nil, fmt.Errorf("%q is no host: write one such as api.example.com, or *.example.com for those below it, without scheme, port and path", entry)
		}
		if wild {
			name = "*." + name
		}
		all = append(all, name)
	}
	return all, nil
}

func isAddress(name string) bool {
	_, err := netip.ParseAddr(name)
	return err == nil
}

// canonical is a host name as it is compared and dialed: in ASCII and lower
// case, an address in its shortest form.
func canonical(host string) (string, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return a.String(), nil
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if strings.ContainsFunc(name, func(r rune) bool { return r >= 0x80 }) {
		ascii, err := idna.Lookup.ToASCII(name)
		if err != nil {
			return "", fmt.Errorf("%q is no host name: %w", host, err)
		}
		name = ascii
	}
	if a, err := netip.ParseAddr(name); err == nil {
		return a.String(), nil
	}
	if name == "" || strings.HasPrefix(name, ".") || strings.Contains(name, "..") {
		return "", fmt.Errorf("%q is no host name", host)
	}
	if numeric(name) { // some resolvers read 0x7f.1 and 2130706433 as addresses
		return "", fmt.Errorf("%q is no host name: write an IPv4 address as four decimal numbers", host)
	}
	return name, nil
}

// numeric reports whether the last part of a name is a number, which is how
// addresses of IPv4 are told from names.
func numeric(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	hex, ok := strings.CutPrefix(last, "0x")
	if ok && strings.Trim(hex, "0123456789abcdef") == "" {
		return true
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}

// A hostError means that a host is not among those that may be reached.
type hostError struct {
	host    string
	allowed hosts
}

func (e *hostError) Error() string {
	return fmt.Sprintf("the host %s is not one that this tool may reach", e.host)
}

// check holds a name in canonical form to the list.
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

// A requestError means that what a model wants is no request that can be made.
type requestError struct{ problem string }

func (e *requestError) Error() string { return e.problem }

// target reads the URL that a model wrote.
func (h hosts) target(raw string) (*url.URL, error) {
	if len(raw) > maxURL {
		return nil, &requestError{fmt.Sprintf("the URL has %d bytes; at most %d are sent", len(raw), maxURL)}
	}
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil {
		if detail, ok := errors.AsType[*url.Error](err); ok {
			err = detail.Err
		}
		return nil, &requestError{fmt.Sprintf("it is no URL: %v", err)}
	}
	return u, h.admit(u)
}

// admit judges where a URL leads, as far as it says, and puts the host into the
// form that was judged.
func (h hosts) admit(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return &requestError{fmt.Sprintf("its scheme is %q; write the whole URL, beginning with https:// or http://", u.Scheme)}
	case u.User != nil:
		return &requestError{"it has a user or password before the host; send an Authorization header instead"}
	case u.Hostname() == "":
		return &requestError{"it names no host"}
	}
	name, err := canonical(u.Hostname())
	if err != nil {
		return &requestError{err.Error()}
	}
	if err := h.check(name); err != nil {
		return err
	}
	at := name
	if strings.Contains(name, ":") {
		at = "[" + strings.ReplaceAll(name, "%", "%25") + "]"
	}
	if port := u.Port(); port != "" {
		at += ":" + port
	}
	u.Host, u.Fragment, u.RawFragment = at, "", ""
	return nil
}
