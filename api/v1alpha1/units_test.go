package v1alpha1_test

import (
	"encoding/json"
	"testing"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

func TestMoney(t *testing.T) {
	cases := map[string]struct {
		text string
		want int64
		bad  bool
	}{
		"dollars and cents":            {"1.50USD", 1_500_000, false},
		"whole dollars":                {"3USD", 3_000_000, false},
		"a millionth of a dollar":      {"0.000001USD", 1, false},
		"the most":                     {"999999.999999USD", 999_999_999_999, false},
		"no currency is refused":       {"1.50", 0, true},
		"another currency is refused":  {"1.50EUR", 0, true},
		"too many places are refused":  {"1.1234567USD", 0, true},
		"a negative amount is refused": {"-1USD", 0, true},
		"nothing is refused":           {"USD", 0, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := v1alpha1.Money(tc.text).MicroUSD()
			if (err != nil) != tc.bad || got != tc.want {
				t.Errorf("MicroUSD(%q) = %d, %v; want %d", tc.text, got, err, tc.want)
			}
		})
	}
}

func TestTokens(t *testing.T) {
	cases := map[string]struct {
		json string
		want int64
		bad  bool
	}{
		"a number":                      {`200000`, 200_000, false},
		"a number in quotes":            {`"200000"`, 200_000, false},
		"thousands":                     {`"500k"`, 500_000, false},
		"millions":                      {`"2M"`, 2_000_000, false},
		"billions":                      {`"1G"`, 1_000_000_000, false},
		"zero is refused":               {`0`, 0, true},
		"a binary suffix is refused":    {`"2Mi"`, 0, true},
		"what overflows is refused":     {`"9000000000000000000G"`, 0, true},
		"more than one suffix is wrong": {`"2kM"`, 0, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var tokens v1alpha1.Tokens
			if err := json.Unmarshal([]byte(tc.json), &tokens); err != nil {
				t.Fatalf("reading %s: %v", tc.json, err)
			}
			got, err := tokens.Count()
			if (err != nil) != tc.bad || got != tc.want {
				t.Errorf("Count(%s) = %d, %v; want %d", tc.json, got, err, tc.want)
			}
		})
	}
}

// What a manifest said comes back as it was said.
func TestUnitsAreWrittenAsTheyWereRead(t *testing.T) {
	for _, text := range []string{`{"contextWindow":200000}`, `{"contextWindow":"200k"}`} {
		var v struct {
			ContextWindow v1alpha1.Tokens `json:"contextWindow"`
		}
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		if got, _ := json.Marshal(v); string(got) != text {
			t.Errorf("%s became %s", text, got)
		}
	}
	var p v1alpha1.Inference
	if err := json.Unmarshal([]byte(`{"temperature":0.2}`), &p); err != nil {
		t.Fatal(err)
	}
	if got, _ := json.Marshal(p); string(got) != `{"temperature":0.2}` {
		t.Errorf("0.2 became %s", got)
	}
}

func TestDuration(t *testing.T) {
	if d, err := v1alpha1.Duration("1h30m").Value(); err != nil || d.Minutes() != 90 {
		t.Errorf("1h30m is %v, %v", d, err)
	}
	if _, err := v1alpha1.Duration("soon").Value(); err == nil {
		t.Error("soon is taken for a duration")
	}
}
