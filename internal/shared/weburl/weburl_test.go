package weburl_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/internal/shared/weburl"
)

func TestParseGivesEveryURLOneSpelling(t *testing.T) {
	cases := map[string]struct{ raw, want string }{
		"in canonical form already":       {"https://example.com/a?b=c", "https://example.com/a?b=c"},
		"blanks around it":                {" \t https://example.com/ \r\n", "https://example.com/"},
		"upper case":                      {"HTTPS://EXAMPLE.com/A", "https://example.com/A"},
		"no path":                         {"https://example.com", "https://example.com/"},
		"no path, but a query":            {"https://example.com?a=b", "https://example.com/?a=b"},
		"a fragment":                      {"https://example.com/a#b?c", "https://example.com/a"},
		"an empty query":                  {"https://example.com/a?#b", "https://example.com/a"},
		"a final dot":                     {"https://example.com./", "https://example.com/"},
		"a final dot of another script":   {"https://example.com。/", "https://example.com/"},
		"the default port of http":        {"http://example.com:80/", "http://example.com/"},
		"the default port of https":       {"https://example.com:443/", "https://example.com/"},
		"a default port with zeros":       {"https://example.com:00443/", "https://example.com/"},
		"an empty port":                   {"https://example.com:/", "https://example.com/"},
		"the default port of another":     {"https://example.com:80/", "https://example.com:80/"},
		"a name of another script":        {"https://MÜNCHEN.example/", "https://xn--mnchen-3ya.example/"},
		"the same name in ASCII":          {"https://XN--MNCHEN-3ya.example/", "https://xn--mnchen-3ya.example/"},
		"letters of full width":           {"https://ｅｘａｍｐｌｅ．com/", "https://example.com/"},
		"a soft hyphen":                   {"https://exam\u00adple.com/", "https://example.com/"},
		"a percent-encoded name":          {"https://ex%C3%A4mple.com/", "https://xn--exmple-cua.com/"},
		"an underscore":                   {"http://my_service.ns.svc/", "http://my_service.ns.svc/"},
		"hyphens in a row":                {"https://r3---sn-a.example/", "https://r3---sn-a.example/"},
		"digits of another script":        {"http://１２７.0.0.1/", "http://127.0.0.1/"},
		"an address with a final dot":     {"http://127.0.0.1./", "http://127.0.0.1/"},
		"IPv6, the long way":              {"http://[2001:DB8:0:0:0:0:0:1]/", "http://[2001:db8::1]/"},
		"an IPv4-mapped address":          {"http://[::ffff:1.2.3.4]/", "http://1.2.3.4/"},
		"an IPv4-mapped address in hex":   {"http://[::FFFF:102:304]:8080/", "http://1.2.3.4:8080/"},
		"dot segments":                    {"https://example.com/a/./b/../c", "https://example.com/a/c"},
		"dot segments at the end":         {"https://example.com/a/b/..", "https://example.com/a/"},
		"a dot at the end":                {"https://example.com/a/.", "https://example.com/a/"},
		"dot segments above the root":     {"https://example.com/../../a", "https://example.com/a"},
		"encoded dot segments":            {"https://example.com/a/%2e%2E/b", "https://example.com/b"},
		"half-encoded dot segments":       {"https://example.com/a/.%2e/b/%2e/c", "https://example.com/b/c"},
		"an encoded letter":               {"https://example.com/%61dmin", "https://example.com/admin"},
		"an encoded slash":                {"https://example.com/a%2fb", "https://example.com/a%2Fb"},
		"an encoded backslash":            {"https://example.com/a%5cb", "https://example.com/a%5Cb"},
		"an encoded percent sign":         {"https://example.com/a%2541", "https://example.com/a%2541"},
		"what must be encoded":            {"https://example.com/a b\"<>^`{|}[]ä", "https://example.com/a%20b%22%3C%3E%5E%60%7B%7C%7D%5B%5D%C3%A4"},
		"what need not be encoded":        {"https://example.com/%7Ea%2Db%2e%5f", "https://example.com/~a-b._"},
		"what is reserved, both ways":     {"https://example.com/a;b%3bc@d%40e", "https://example.com/a;b%3Bc@d%40e"},
		"two slashes, which are not one":  {"https://example.com//a//b", "https://example.com//a//b"},
		"a query that needs encoding":     {"https://example.com/?q=a b\\<ä>&r=%2f%41[]", "https://example.com/?q=a%20b%5C%3C%C3%A4%3E&r=%2FA[]"},
		"a percent sign that encodes":     {"https://example.com/?q=100%&r=%zz", "https://example.com/?q=100%25&r=%25zz"},
		"plus signs and empty parameters": {"https://example.com/?q=a+b&&=&c", "https://example.com/?q=a+b&&=&c"},
		"dots in a query":                 {"https://example.com/?q=../..", "https://example.com/?q=../.."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u, err := weburl.Parse(tc.raw)
			if err != nil {
				t.Fatalf("Parse(%q): %v", tc.raw, err)
			}
			if u.String() != tc.want {
				t.Errorf("Parse(%q) = %s, want %s", tc.raw, u, tc.want)
			}
		})
	}
}

func TestParseRefusesWhatProgramsReadDifferently(t *testing.T) {
	cases := map[string]struct{ raw, want string }{
		"an address as one number":      {"http://2130706433/", "write an IPv4 address as four decimal numbers"},
		"an address in hex":             {"http://0x7f000001/", "four decimal numbers"},
		"an address in parts of hex":    {"http://0x7f.1/", "four decimal numbers"},
		"an address in octal":           {"http://0177.0.0.1/", "four decimal numbers"},
		"an address of two parts":       {"http://127.1/", "four decimal numbers"},
		"the same in full width":        {"http://０x7f.1/", "four decimal numbers"},
		"a zone":                        {"http://[fe80::1%25eth0]/", "has a zone"},
		"an IPv4 address in brackets":   {"http://[1.2.3.4]/", "it is no URL"},
		"a user":                        {"https://user@example.com/", "user or password"},
		"another host before the at":    {"http://good.example:80@127.0.0.1/", "user or password"},
		"a backslash for a slash":       {`https://example.com\a`, "backslash"},
		"a backslash before an at":      {`http://example.com\@127.0.0.1/`, "backslash"},
		"a backslash in a path":         {`https://example.com/a\..\b`, "backslash"},
		"a tab":                         {"https://exam\tple.com/", "control character"},
		"a line end":                    {"https://example.com/\r\nX: y", "control character"},
		"a line end in a query":         {"https://example.com/?a\nb", "control character"},
		"a zero":                        {"https://example.com/\x00", "control character"},
		"a blank in the host":           {"https://exam ple.com/", "it is no URL"},
		"two final dots":                {"https://example.com../", "is no host name"},
		"a name that begins with a dot": {"https://.example.com/", "is no host name"},
		"a dot alone":                   {"https://./a", "is no host name"},
		"what is no name in ASCII":      {"https://xn--a/", "is no host name"},
		"a name with a quote":           {"https://exa'mple.com/", "other characters"},
		"a port that is too large":      {"https://example.com:65536/", "from 1 to 65535"},
		"port 0":                        {"https://example.com:0/", "from 1 to 65535"},
		"a port in letters":             {"https://example.com:http/", "it is no URL"},
		"no scheme":                     {"example.com/a", "beginning with https://"},
		"no scheme, but a host":         {"//example.com/a", "beginning with https://"},
		"another scheme":                {"file:///etc/passwd", `its scheme is "file"`},
		"no host":                       {"https:///a", "it names no host"},
		"no slashes":                    {"https:example.com/a", "it names no host"},
		"a percent sign in a path":      {"https://example.com/100%", "it is no URL"},
		"dots beside an encoded slash":  {"https://example.com/a/..%2fb", "beside an encoded slash"},
		"dots between encoded slashes":  {"https://example.com/a%2F%2e%2e%2Fb", "beside an encoded slash"},
		"dots beside a backslash":       {"https://example.com/a/..%5Cb", "beside an encoded slash"},
		"dots encoded twice":            {"https://example.com/a/%252e%252e/b", "encoded"},
		"dots before a parameter":       {"https://example.com/a/..;x/b", "semicolon"},
		"more than is sent":             {"https://example.com/" + strings.Repeat("a", weburl.MaxBytes), "at most 8192"},
		"more than is sent, escaped":    {"https://example.com/" + strings.Repeat("ä", weburl.MaxBytes/3), "when it is escaped"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if u, err := weburl.Parse(tc.raw); err == nil {
				t.Errorf("Parse(%q) = %s", tc.raw, u)
			} else if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Parse(%q): %v, want %s", tc.raw, err, tc.want)
			}
		})
	}
}

func TestLeadsUp(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "a": false, ".": false, "...": false, "a..b": false, "1..2": false, "a/b": false, "..a/b": false, "100%": false,
		"..": true, "../a": true, "a/..": true, `a\..\b`: true, "%2e%2e": true, ".%2E": true, "a%2f..": true, "%252e%252e%252f": true, "..;a/b": true,
		strings.Repeat("%25", 20): false, "%" + strings.Repeat("25", 20): true,
	} {
		if got := weburl.LeadsUp(text); got != want {
			t.Errorf("LeadsUp(%q) = %t, want %t", text, got, want)
		}
	}
}

func TestIsPrefix(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "h": true, "https:/": true, "http://": true, "https://api.exam": true, "https://a.example:44": true, "https://a.example:8443/": true,
		"http://10.1.": true, "http://[fd00:": true, "http://[fd00::1]": true, "http://[fd00::1]:80": true, "https://a_b.example/": true, "https://xn--mnchen-3y": true,
		"https://a.example/.": true, "https://a.example/..": true, "https://a.example/..%": true, "https://a.example//b": true, "https://a.example/%7": true, "https://a.example/?q=%C3%": true,
		"example.com": false, "/a": false, "HTTP://a.example/": false, "ftp://a.example/": false, "https://A.example": false, "https://a.example:443/": false, "http://a.example:080/": false,
		"https://a.example?q": false, "https://a.example#": false, "https://a.example/#": false, "https://a.example/./b": false, "https://a.example/../b": false, "https://a.example/a b": false,
		"https://a.example/ ": false, " https://a.example/": false, "https://a.example/%2f": false, "https://a.example/%41": false, "https://a.example/%2E%2E/": false, "https://a.example/ü": false,
		"https://ü.example": false, "https://me@a.example/": false, "https://me@a.example": false, "https://a.example./": false, "http://[::1/": false, "http://127.1/": false, `https://a.example\b`: false, "https:///a": false,
	} {
		if got := weburl.IsPrefix(text); got != want {
			t.Errorf("IsPrefix(%q) = %t, want %t", text, got, want)
		}
	}
}

// The canonical form of a canonical URL is itself, net/http sends it as it is
// written, and it holds nothing that parsers disagree about.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"https://example.com", "http://[::1%25lo]:80", "http://[::ffff:1.2.3.4]", "http://0x7f.1", "http://a@b", "http://１.1", "https://ä.example。/%2e%2e/%zz?%&#",
		"https://example.com/a/..%2f", "https://xn--a", "https://a.b/%c3%28?\\", "HTTP://A:0080//./..//", "http://ß.example", "http://a\u200db",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := weburl.Parse(raw)
		if err != nil {
			return
		}
		canonical := u.String()
		again, err := weburl.Parse(canonical)
		if err != nil || again.String() != canonical {
			t.Fatalf("Parse(%q) = %q, which becomes %v, %v", raw, canonical, again, err)
		}
		parsed, err := url.Parse(canonical)
		if err != nil || parsed.Scheme+"://"+parsed.Host+parsed.RequestURI() != canonical || u.RequestURI() != parsed.RequestURI() {
			t.Fatalf("Parse(%q) = %q, which is sent as %v, %v", raw, canonical, parsed, err)
		}
		if strings.ContainsAny(canonical, "\\ \t\r\n#@") && !strings.ContainsAny(parsed.RequestURI(), "@") || weburl.LeadsUp(parsed.EscapedPath()) {
			t.Fatalf("Parse(%q) = %q", raw, canonical)
		}
		if begin, ok := notPrefix(canonical); ok {
			t.Fatalf("IsPrefix(%q) is false, but %q is canonical", begin, canonical)
		}
		if host, err := weburl.Host(parsed.Hostname()); err != nil || host != parsed.Hostname() {
			t.Fatalf("Host(%q) = %q, %v", parsed.Hostname(), host, err)
		}
	})
}

// notPrefix is a text that a canonical URL begins with and that is said not to be.
func notPrefix(canonical string) (string, bool) {
	for end := range len(canonical) + 1 {
		if !weburl.IsPrefix(canonical[:end]) {
			return canonical[:end], true
		}
	}
	return "", false
}
