package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/tool"
)

// opened has what the factories of a custom runner made and what must be closed when the
// attempt, or one session of it, ends.
type opened struct {
	parent *opened // of a session: what it has is closed with the attempt

	mu  sync.Mutex
	all []resource
}

// A resource is closed once. what names it in messages.
type resource struct {
	what  string
	of    any
	close func() error
}

// add adds what a factory made, if it is an [io.Closer]; nil is none. A value that several
// calls of factories returned is added once.
func (o *opened) add(what string, made any) {
	c, ok := made.(io.Closer)
	if !ok {
		return
	}
	r := resource{what: what, close: c.Close}
	if reflect.ValueOf(made).Comparable() {
		if o.has(made) {
			return
		}
		r.of = made
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, r)
}

// has reports whether a value was added, also to the parent.
func (o *opened) has(made any) bool {
	if o.parent != nil && o.parent.has(made) {
		return true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.ContainsFunc(o.all, func(r resource) bool { return r.of == made })
}

// addTools adds what tools hold.
func (o *opened) addTools(tools []tool.Tool) {
	for _, t := range tools {
		o.add("the tool "+t.Name, t.Closer)
	}
}

// addFunc adds a function that closes something; nil adds nothing.
func (o *opened) addFunc(what string, f func() error) {
	if f == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, resource{what: what, close: f})
}

// close closes everything, the last added first, until ctx ends.
func (o *opened) close(ctx context.Context) error {
	o.mu.Lock()
	all := o.all
	o.all = nil
	o.mu.Unlock()
	var errs []error
	for i, r := range slices.Backward(all) {
		closed := make(chan error, 1)
		go func() { closed <- r.closeSafely() }()
		select {
		case err := <-closed:
			if err != nil {
				errs = append(errs, fmt.Errorf("closing %s: %w", r.what, err))
			}
		case <-ctx.Done():
			return errors.Join(append(errs, fmt.Errorf("closing %s took too long; %d more are not closed", r.what, i))...)
		}
	}
	return errors.Join(errs...)
}

// closeSafely makes an error of a panic.
func (r resource) closeSafely() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return r.close()
}
