// Package policy_test attacks the admission policies on a real API server, with
// real tokens bound to real pods and the built-in role edit.
package policy_test

import (
	"testing"

	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
)

func TestMain(m *testing.M) { apitest.Main(m) }
