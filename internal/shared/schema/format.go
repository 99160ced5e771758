package schema

import (
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// A format is a value of the keyword "format" that is checked.
type format struct {
	is   func(string) bool
	what string // for the author of the value
}

// formats are those that are checked, by name, as JSON Schema defines them
// (2020-12, Validation, section 7.3). Any other name says nothing of a value.
var formats = map[string]format{
	"date-time": {isTime(time.RFC3339), "a date and time with a zone, such as 2030-01-31T09:00:00Z"},
	"date":      {isTime(time.DateOnly), "a date, such as 2030-01-31"},
	"time":      {isTime("15:04:05Z07:00"), "a time with a zone, such as 09:00:00Z"},
	"email":     {isEmail, "an email address"},
	"hostname":  {isHostname, "a host name"},
	"ipv4":      {isIPv4, "an IPv4 address"},
	"ipv6":      {isIPv6, "an IPv6 address"},
	"uri":       {isURI, "a URI with its scheme, such as https://example.com/"},
	"uuid":      {uuid.MatchString, "a UUID"},
}

func isTime(layout string) func(string) bool {
	return func(s string) bool {
		_, err := time.Parse(layout, strings.ToUpper(s)) // t and z may be lower case
		return err == nil
	}
}

func isEmail(s string) bool {
	a, err := mail.ParseAddress(s)
	return err == nil && a.Address == s
}

func isIPv4(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is4()
}

func isIPv6(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is6() && a.Zone() == ""
}

func isURI(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.IsAbs() && !strings.ContainsAny(s, " \"<>\\^`{|}")
}

var (
	uuid  = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
	label = regexp.MustCompile(`^[0-9A-Za-z]([0-9A-Za-z-]{0,61}[0-9A-Za-z])?$`)
)

func isHostname(s string) bool {
	if len(s) > 253 {
		return false
	}
	for part := range strings.SplitSeq(s, ".") {
		if !label.MatchString(part) {
			return false
		}
	}
	return true
}
