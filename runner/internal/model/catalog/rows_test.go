package catalog

import "testing"

func TestRowsAreSound(t *testing.T) {
	seen := map[[2]string]bool{}
	for _, r := range rows {
		key := [2]string{r.provider, r.prefix}
		switch {
		case r.prefix == "" || canonical(r.prefix) != r.prefix:
			t.Errorf("%q is not how canonical writes a name", r.prefix)
		case seen[key]:
			t.Errorf("%q is there twice", r.prefix)
		case r.maxOutput <= 0 || r.maxOutput > r.window/2:
			t.Errorf("%q has a window of %d and an output of %d", r.prefix, r.window, r.maxOutput)
		}
		seen[key] = true
	}
}
