package decisions

import (
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// The next request of at most 3 KiB, and its displayDigest, may have found no room.
func TestARunWithoutRoomForTheLargestRequestIsFull(t *testing.T) {
	const largest = task.MaxMessage + task.MaxArgs + 8*128 + task.UsersSize + task.DisplaySize
	for left, want := range map[int]bool{largest: false, largest - 1: true} {
		shown := v1alpha1.PendingRequest{Args: strings.Repeat("a", task.MaxAsked-left-task.DisplaySize), DisplayDigest: strings.Repeat("d", 64)}
		if got := full([]v1alpha1.PendingRequest{shown}); got != want {
			t.Errorf("with room for %d bytes full() = %v", left, got)
		}
	}
}
