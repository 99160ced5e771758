package egress

import (
	"cmp"
	"encoding/json"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// A Class is the set of destinations of pods besides DNS and the API server. Equal classes have equal labels.
type Class struct {
	// Ports are open to every address that is not link-local.
	Ports []int32 `json:"ports"`
	// Namespaces are the namespaces whose pods can be reached, at every port.
	Namespaces []string `json:"namespaces,omitempty"`
	// Addresses are open at one port each.
	Addresses []Address `json:"addresses,omitempty"`
}

// An Address is one IP address and one port.
type Address struct {
	IP   string `json:"ip"`
	Port int32  `json:"port"`
}

const (
	https int32 = 443
	http  int32 = 80
	ssh   int32 = 22
)

// Of returns the class of a snapshot, for a Run in a namespace. urls are further destinations of its pod, such as the
// proxy.
func Of(s task.Snapshot, namespace string, urls ...string) Class {
	c := Class{Ports: []int32{https}}
	for _, u := range append(urlsOf(s), urls...) {
		c = c.open(u, namespace)
	}
	for _, a := range agents(s) {
		if slices.ContainsFunc(a.Tools, isWeb) {
			c.Ports = append(c.Ports, http)
		}
	}
	if s.Sandbox != nil && len(s.Sandbox.Hosts) > 0 {
		c.Ports = append(c.Ports, http, ssh)
	}
	slices.Sort(c.Ports)
	slices.Sort(c.Namespaces)
	slices.SortFunc(c.Addresses, func(a, b Address) int { return cmp.Or(cmp.Compare(a.IP, b.IP), cmp.Compare(a.Port, b.Port)) })
	c.Ports, c.Namespaces, c.Addresses = slices.Compact(c.Ports), slices.Compact(c.Namespaces), slices.Compact(c.Addresses)
	return c
}

// Label returns the hash of the class, as the value of a label.
func (c Class) Label() string { return task.Hash(c.encode())[:16] }

// maxText is the maximum length of the text of a class in bytes: some 200 destinations. The API server bounds all
// annotations of a pod together, and the operator caches those of active pods.
const maxText = 8 << 10

// Text returns the class for an annotation, from which Parse reads it. It is empty if it would be
// longer than maxText.
func (c Class) Text() string {
	text := c.encode()
	if len(text) > maxText {
		return ""
	}
	return string(text)
}

// Parse returns the class of a text. It reports false unless the class has this label.
func Parse(text, label string) (Class, bool) {
	var c Class
	err := json.Unmarshal([]byte(text), &c)
	return c, err == nil && c.Label() == label
}

func (c Class) encode() []byte {
	text, _ := json.Marshal(c) // of strings, numbers and lists alone: it does not fail
	return text
}

func agents(s task.Snapshot) []task.Agent { return append([]task.Agent{s.Agent}, s.Agents...) }

// isWeb reports whether the model chooses the host that a tool reaches.
func isWeb(t task.Tool) bool { return task.Builtins[t.Builtin].Web }

// urlsOf returns the URLs in a snapshot. Destinations without a URL are at port 443 of a public host.
func urlsOf(s task.Snapshot) []string {
	var out []string
	for _, m := range s.Models {
		out = append(out, m.Endpoint)
	}
	for _, a := range agents(s) {
		for _, t := range a.Tools {
			out = append(out, t.Endpoint)
			for _, h := range t.Hosts {
				out = append(out, "http://"+h, "https://"+h)
			}
		}
		for _, h := range a.Hooks {
			out = append(out, h.URL)
		}
	}
	for _, t := range s.Toolsets {
		out = append(out, urlsOfToolset(t)...)
	}
	for _, g := range s.Repositories() {
		out = append(out, gitURL(g.URL))
	}
	return slices.DeleteFunc(out, func(u string) bool { return u == "" })
}

func urlsOfToolset(t task.Toolset) []string {
	var out []string
	auth := func(a *task.Auth) {
		if a != nil {
			out = append(out, a.TokenURL)
		}
	}
	if t.HTTP != nil {
		out = append(out, t.HTTP.URL)
		auth(t.HTTP.Auth)
	}
	if t.Requests != nil {
		out = append(out, t.Requests.BaseURL)
		auth(t.Requests.Auth)
	}
	return out
}

// gitURL returns the URL of a repository that is written as git@host:path.
func gitURL(text string) string {
	if strings.Contains(text, "://") {
		return text
	}
	host, path, _ := strings.Cut(text, ":")
	return "ssh://" + host + "/" + path
}

// open returns the class with the host of a URL added. It ignores an invalid URL, which the rules of its field refuse.
func (c Class) open(text, namespace string) Class {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return c
	}
	port := portOf(u)
	if port == 0 {
		return c
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if ip, err := netip.ParseAddr(host); err == nil {
		c.Addresses = append(c.Addresses, Address{IP: ip.Unmap().WithZone("").String(), Port: port})
		return c
	}
	inside, outside := serviceNamespace(host, namespace)
	if inside != "" {
		c.Namespaces = append(c.Namespaces, inside)
	}
	if outside {
		c.Ports = append(c.Ports, port)
	}
	return c
}

func portOf(u *url.URL) int32 {
	if text := u.Port(); text != "" {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			return 0
		}
		return int32(n)
	}
	return map[string]int32{"http": http, "https": https, "ssh": ssh, "git+ssh": ssh}[u.Scheme]
}

// serviceNamespace returns the namespace of the Service that a host can be, or an empty name, and whether it can be a
// host outside the cluster. A name of two parts can be both.
func serviceNamespace(host, namespace string) (inside string, outside bool) {
	parts := strings.Split(host, ".")
	switch {
	case len(parts) == 1 && host == "localhost":
		return "", false
	case len(parts) == 1:
		return namespace, false
	case len(parts) == 2 && isName(parts[1]):
		return parts[1], true
	case len(parts) > 2 && slices.Contains(parts[2:], "svc"):
		at := slices.Index(parts, "svc")
		return parts[at-1], false
	}
	return "", true
}

// isName reports whether a part of a host can be the name of a namespace.
func isName(part string) bool { return part != "" && part != "*" && len(part) <= 63 }
