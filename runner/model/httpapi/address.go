package httpapi

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Parse splits the address of an endpoint into what a path is appended to,
// without a slash at its end, and a query. An address that holds a credential
// is refused, and quoted in no error.
func Parse(address string) (base, query string, err error) {
	if address == "" {
		return "", "", errors.New("the endpoint is empty: write one such as http://ollama:11434/v1")
	}
	u, err := url.Parse(address)
	if err != nil {
		return "", "", errors.New("the endpoint is not a URL") // url's own error would quote it, password included
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "", "", fmt.Errorf("endpoint %q is not a http or https URL", u.Redacted())
	case u.User != nil:
		return "", "", errors.New("the endpoint holds a credential: put it into a Secret")
	}
	query = u.RawQuery
	u.RawQuery, u.Fragment = "", ""
	return strings.TrimRight(u.String(), "/"), query, nil
}
