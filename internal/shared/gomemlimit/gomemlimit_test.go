package gomemlimit

import (
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
)

func TestFit(t *testing.T) {
	cases := map[string]struct {
		says, env string
		want      int64
	}{
		"the limit of a container": {"268435456\n", "", 214748320},
		"no limit":                 {"max\n", "", math.MaxInt64},
		"no limit in the first version of control groups": {"9223372036854771712\n", "", 9223372036854771712 / 100 * memoryPercent},
		"what makes no sense":                             {"-1\n", "", math.MaxInt64},
		"somebody said how much":                          {"268435456\n", "1GiB", math.MaxInt64},
		"a place that knows no such":                      {"", "", math.MaxInt64},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := debug.SetMemoryLimit(math.MaxInt64)
			defer debug.SetMemoryLimit(before)
			t.Setenv("GOMEMLIMIT", tc.env)
			file := filepath.Join(t.TempDir(), "memory.max")
			if tc.says != "" {
				if err := os.WriteFile(file, []byte(tc.says), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			fit([]string{filepath.Join(t.TempDir(), "none"), file})
			if got := debug.SetMemoryLimit(-1); got != tc.want {
				t.Errorf("the limit is %d, want %d", got, tc.want)
			}
		})
	}
}
