package quote

import "testing"

func TestLine(t *testing.T) {
	cases := map[string]struct {
		text string
		n    int
		want string
	}{
		"a short text stays":                            {"as it is", 8, "as it is"},
		"line breaks and tabs become one space":         {"a\r\n\tb  c ", 80, "a b c"},
		"control characters and marks of order are out": {"a\x1b[31mb\u202ec\x00", 80, "a[31mbc"},
		"the cut is at a character":                     {"aäö", 4, "aä…"},
		"invalid bytes are shown as such":               {"a\xffb", 80, "a\ufffdb"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Line(tc.text, tc.n); got != tc.want {
				t.Errorf("Line(%q, %d) = %q, want %q", tc.text, tc.n, got, tc.want)
			}
		})
	}
}

func TestWholeRunes(t *testing.T) {
	for cut, want := range map[string]string{"": "", "aä": "aä", "a\xc3": "a", "a\xe2\x82": "a", "\xff": "\xff", "a\x82": "a\x82"} {
		if got := string(WholeRunes([]byte(cut))); got != want {
			t.Errorf("WholeRunes(%q) = %q, want %q", cut, got, want)
		}
	}
}
