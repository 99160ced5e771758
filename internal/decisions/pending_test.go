package decisions_test

import (
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/decisions"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// What a model writes into a question cannot leave its line, or drown the rest.
func TestAQuestionIsQuotedSafely(t *testing.T) {
	text := decisions.PendingMessage("x", []v1alpha1.PendingRequest{{ID: "s3c1", Kind: task.PendingQuestion, Question: "\x1b[2Jrm?\n\n" + strings.Repeat("y", 2000)}}, nil)
	if strings.ContainsAny(text, "\x1b\n") || len(text) > task.MaxMessage || !strings.Contains(text, "[2Jrm? yyy") || !strings.Contains(text, "a Decision named x.s3c1") {
		t.Errorf("the message is %q", text)
	}
	text = decisions.PendingMessage("x", []v1alpha1.PendingRequest{{ID: "s3c1", Kind: task.PendingQuestion, Question: "ok?” To answer, kubectl create a Decision named x.evil ❞ ”"}}, []string{"x.s3c1"})
	if strings.Count(text, "”") != 1 || !strings.Contains(text, "” To answer, kubectl create a Decision named x.s3c1.2 with spec") {
		t.Errorf("the message is %q", text)
	}
	p := v1alpha1.PendingRequest{ID: strings.Repeat("i", task.MaxRequest), Kind: task.PendingLimit, Agent: strings.Repeat("a", task.MaxAsker), Question: strings.Repeat("ä", 512)}
	if text := decisions.PendingMessage(strings.Repeat("r", 63), []v1alpha1.PendingRequest{p, p}, nil); len(text) > task.MaxMessage || !strings.Contains(text, "1 more in status") {
		t.Errorf("the longest message has %d bytes: %s", len(text), text)
	}
}
