package conversation

import "testing"

func TestCompactJSONIsReadable(t *testing.T) {
	for data, want := range map[string]string{
		`{"b": "x \u0026\u0026 y \u003c z", "a": [1, 2]}`: `{"b":"x && y < z","a":[1,2]}`,
		`{"a":"\\u0026 and \n"}`:                          `{"a":"\\u0026 and \n"}`,
		`{"a":"\u001b[2J"}`:                               `{"a":"\u001b[2J"}`,
		`no JSON`:                                         `no JSON`,
	} {
		if got := compact([]byte(data)); got != want {
			t.Errorf("%s: %s, want %s", data, got, want)
		}
	}
}
