package mcp

import (
	"strconv"
	"sync"
	"time"
)

// calls are those under way, by the tokens that the server was given for them.
type calls struct {
	mu   sync.Mutex
	last int64
	open map[string]func(text string)
}

// begin registers a call that is to hear of progress.
func (c *calls) begin(hear func(text string)) (token string, end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	token = "call-" + strconv.FormatInt(c.last, 10)
	if c.open == nil {
		c.open = map[string]func(string){}
	}
	c.open[token] = hear
	return token, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.open, token)
	}
}

// progressed tells a call of progress; what belongs to none is dropped.
func (c *calls) progressed(token, text string) {
	c.mu.Lock()
	hear := c.open[token]
	c.mu.Unlock()
	if hear != nil {
		hear(text)
	}
}

// often is how often people are shown progress.
const often = 500 * time.Millisecond

// A ticker shows what a call is at, but not too often.
type ticker struct {
	emit func(string)
	now  func() time.Time

	mu   sync.Mutex
	last time.Time
}

func (t *ticker) show(text string) {
	t.mu.Lock()
	now := t.now()
	due := now.Sub(t.last) >= often
	if due {
		t.last = now
	}
	t.mu.Unlock()
	if due && text != "" {
		t.emit(text)
	}
}
