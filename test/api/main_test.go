// Package api_test holds the kinds to their promises on a real API server:
// each rule of a schema has an example that it refuses.
package api_test

import (
	"testing"

	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
)

func TestMain(m *testing.M) { apitest.Main(m) }
