// Package weburl puts http and https URLs into one canonical form, so that a policy rule, an approver or a list of
// hosts decides about exactly the URL that is requested, in any spelling.
//
// The form follows RFC 3986, section 6.2.2 and 6.2.3: scheme and host in lower case, internationalized names in ASCII
// (UTS 46, Lookup profile), and an address in its canonical form (RFC 5952 for IPv6, IPv4-mapped addresses as IPv4). It
// has no default port, no dot segments, percent-encoding only where it is needed and in upper case, no fragment. Forms
// that programs read differently are refused: user information, backslashes, control characters, IPv6 zones, and IPv4
// addresses in hexadecimal, octal or fewer than four parts.
package weburl
