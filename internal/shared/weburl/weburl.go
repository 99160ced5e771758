package weburl

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// MaxBytes bounds a URL, before and after it is put into canonical form. No
// common server accepts a longer one.
const MaxBytes = 8 << 10

// An Error says why a text cannot be requested as a URL. It reads as the end of
// a sentence about the URL, and says what to write instead.
type Error struct{ Problem string }

func (e *Error) Error() string { return e.Problem }

func refuse(format string, args ...any) error {
	return &Error{Problem: fmt.Sprintf(format, args...)}
}

// Parse reads a URL and returns it in canonical form: its String is the canonical
// spelling and, but for scheme and host, exactly what is sent. An error is an
// *Error.
func Parse(raw string) (*url.URL, error) {
	if len(raw) > MaxBytes {
		return nil, refuse("the URL has %d bytes; at most %d are sent", len(raw), MaxBytes)
	}
	raw = strings.TrimSpace(raw)
	if err := checkCharacters(raw); err != nil {
		return nil, err
	}
	// The fragment goes and the query is escaped first: net/url takes the one apart
	// for its own errors and leaves the other alone.
	raw, _, _ = strings.Cut(raw, "#")
	before, query, _ := strings.Cut(raw, "?")
	u, err := url.Parse(before)
	if err != nil {
		if detail, ok := errors.AsType[*url.Error](err); ok {
			err = detail.Err
		}
		return nil, refuse("it is no URL: %v", err)
	}
	u.RawQuery = normalize(query, isQuery)
	if err := Canonicalize(u); err != nil {
		return nil, err
	}
	return u, nil
}

// checkCharacters refuses what some parsers drop, or read as something else.
func checkCharacters(raw string) error {
	path, _, _ := strings.Cut(raw, "?")
	switch {
	case strings.ContainsFunc(raw, isControl):
		return refuse("it is no URL: it has a tab, a line end or another control character in it; write it without, or percent-encoded")
	case strings.Contains(path, `\`):
		return refuse(`it is no URL: it has a backslash in it, which some programs read as a slash; write / or %%5C`)
	}
	return nil
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// Canonicalize puts a URL that was parsed elsewhere, such as the target of a
// redirect, into canonical form. An error is an *Error.
func Canonicalize(u *url.URL) error {
	u.Scheme = strings.ToLower(u.Scheme)
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return refuse("its scheme is %q; write the whole URL, beginning with https:// or http://", u.Scheme)
	case u.User != nil:
		return refuse("it has a user or password before the host; send an Authorization header instead")
	case u.Hostname() == "" || u.Opaque != "":
		return refuse("it names no host")
	}
	authority, err := authority(u)
	if err != nil {
		return err
	}
	path, err := canonicalPath(u.EscapedPath())
	if err != nil {
		return err
	}
	decoded, err := url.PathUnescape(path)
	if err != nil {
		return refuse("it is no URL: %v", err)
	}
	*u = url.URL{Scheme: u.Scheme, Host: authority, Path: decoded, RawPath: path, RawQuery: normalize(u.RawQuery, isQuery)}
	if size := len(u.String()); size > MaxBytes {
		return refuse("the URL has %d bytes when it is escaped; at most %d are sent", size, MaxBytes)
	}
	return nil
}

// authority is host and port: the host in canonical form, the port only where
// it is not the default of the scheme.
func authority(u *url.URL) (string, error) {
	host, err := Host(u.Hostname())
	if err != nil {
		return "", err
	}
	if strings.HasPrefix(u.Host, "[") != strings.Contains(host, ":") && !isMapped(u.Hostname()) {
		return "", refuse("%q is no host name: only an IPv6 address stands in brackets", u.Host)
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if u.Port() == "" {
		return host, nil
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	switch {
	case err != nil || port == 0:
		return "", refuse("its port is %s; write a number from 1 to 65535", u.Port())
	case u.Scheme == "http" && port == 80, u.Scheme == "https" && port == 443:
		return host, nil
	}
	return host + ":" + strconv.FormatUint(port, 10), nil
}
