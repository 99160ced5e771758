package web

import (
	"strings"
	"testing"
)

func TestTarget(t *testing.T) {
	everywhere, err := readHosts(nil)
	if err != nil {
		t.Fatal(err)
	}
	some, err := readHosts([]string{"API.example.com", "*.Cluster.local", "10.1.2.3", "[fd12::1]", "münchen.example"})
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		hosts     hosts
		raw, want string // what is requested, or what is wrong
	}{
		"a URL":                         {everywhere, "https://example.com/a?b=c#d", "https://example.com/a?b=c"},
		"space around it":               {everywhere, " http://example.com \n", "http://example.com/"},
		"upper case and a dot":          {everywhere, "HTTPS://Example.COM.:8443/", "https://example.com:8443/"},
		"not ASCII":                     {everywhere, "https://münchen.example/", "https://xn--mnchen-3ya.example/"},
		"digits of another script":      {everywhere, "http://１２７.0.0.1/", "http://127.0.0.1/"},
		"dots of another script":        {everywhere, "http://127。0。0。1/", "http://127.0.0.1/"},
		"IPv6, the long way":            {everywhere, "http://[0:0:0:0:0:0:0:1]:80/", "http://[::1]/"},
		"IPv6 with IPv4 in it":          {everywhere, "http://[::ffff:7f00:1]/", "http://127.0.0.1/"},
		"an address as one number":      {everywhere, "http://2130706433/", "is no host name: write an IPv4 address as four decimal numbers"},
		"an address in hex":             {everywhere, "http://0x7f000001/", "as four decimal numbers"},
		"an address in parts of hex":    {everywhere, "http://0x7f.0x0.0x0.0x1/", "as four decimal numbers"},
		"an address in octal":           {everywhere, "http://0177.0.0.1/", "as four decimal numbers"},
		"an address of two parts":       {everywhere, "http://127.1/", "as four decimal numbers"},
		"a password":                    {everywhere, "https://u:p@example.com/", "user or password"},
		"another host before the at":    {everywhere, "http://public.example@127.0.0.1/", "user or password"},
		"a backslash":                   {everywhere, `http://example.com\@127.0.0.1/`, "it is no URL"},
		"no scheme":                     {everywhere, "example.com/a", "write the whole URL, beginning with https://"},
		"a file":                        {everywhere, "file:///etc/passwd", `its scheme is "file"`},
		"another scheme":                {everywhere, "gopher://example.com/", `its scheme is "gopher"`},
		"no host":                       {everywhere, "https:///a", "it names no host"},
		"no name":                       {everywhere, "https://./a", "is no host name"},
		"a line end":                    {everywhere, "https://example.com/\r\nX: y", "it is no URL"},
		"very long":                     {everywhere, "https://example.com/" + strings.Repeat("a", 8<<10), "at most 8192"},
		"listed":                        {some, "https://api.EXAMPLE.com:8443/x", "https://api.example.com:8443/x"},
		"below a listed one":            {some, "http://db.svc.cluster.local/", "http://db.svc.cluster.local/"},
		"a listed address":              {some, "http://10.1.2.3/", "http://10.1.2.3/"},
		"a listed address of IPv6":      {some, "http://[FD12:0::1]/", "http://[fd12::1]/"},
		"listed in another script":      {some, "http://xn--mnchen-3ya.example/", "http://xn--mnchen-3ya.example/"},
		"not listed":                    {some, "https://example.com/", "this tool may not reach the host example.com"},
		"below one that is listed only": {some, "https://x.api.example.com/", "may not reach the host"},
		"the suffix itself":             {some, "https://cluster.local/", "may not reach the host"},
		"a name that ends like it":      {some, "https://evilcluster.local/", "may not reach the host"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u, err := tc.hosts.target(tc.raw)
			if err != nil {
				if !strings.Contains(err.Error(), tc.want) {
					t.Errorf("target(%q): %v, want %s", tc.raw, err, tc.want)
				}
			} else if u.String() != tc.want {
				t.Errorf("target(%q) = %s, want %s", tc.raw, u, tc.want)
			}
		})
	}
}

func TestHostsThatAreNone(t *testing.T) {
	for _, entry := range []string{"", "https://example.com", "example.com:443", "example.com/x", "*", "*.", "a.*.com", "**.com", "u@example.com", "127.1", "a b"} {
		if list, err := readHosts([]string{entry}); err == nil {
			t.Errorf("readHosts(%q) = %v", entry, list)
		}
		if _, err := HTTPRequest(Options{Hosts: []string{entry}}); err == nil || !strings.Contains(err.Error(), "is no host: write one such as") {
			t.Errorf("HTTPRequest with the host %q: error %v", entry, err)
		}
		if _, err := Browse(Options{Hosts: []string{entry}}); err == nil {
			t.Errorf("Browse takes the host %q", entry)
		}
	}
}

func FuzzTarget(f *testing.F) {
	for _, seed := range []string{"https://example.com", "http://[::1%25lo]:80", "http://0x7f.1", "http://a@b", "http://１.1"} {
		f.Add(seed)
	}
	list, err := readHosts([]string{"example.com", "*.example.org"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := list.target(raw)
		if err != nil {
			return
		}
		if h := u.Hostname(); h != "example.com" && !strings.HasSuffix(h, ".example.org") {
			t.Errorf("target(%q) = %s", raw, u)
		}
		if again, err := list.target(u.String()); err != nil || again.Host != u.Host {
			t.Errorf("target(%q) = %s, which is not its own target: %v, %v", raw, u, again, err)
		}
	})
}
