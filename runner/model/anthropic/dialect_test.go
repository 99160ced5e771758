package anthropic

import (
	"fmt"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/model/wiretest"
)

// Each family of models has an address and a date.
func TestEachFamilySaysWhereItIsFrom(t *testing.T) {
	for provider, d := range dialects {
		for _, f := range d.families {
			wiretest.CheckSources(t, fmt.Sprintf("%s, %q", provider, f.names), f.sources, f.date)
		}
	}
}
