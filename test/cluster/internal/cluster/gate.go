package cluster

import (
	"context"
	"fmt"
	"io"
	"net"

	"github.com/deckhand-dev/deckhand/test/cluster/internal/netns"
)

// Gate listens on an address of the host and carries each connection to the
// same address inside a namespace. It returns only with an error.
func Gate(ctx context.Context, address, namespace string) error {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("opening gate: %w", err)
	}
	for {
		outer, err := l.Accept()
		if err != nil {
			return fmt.Errorf("accepting at gate: %w", err)
		}
		go func() {
			inner, err := netns.Namespace(namespace).Dial(ctx, "tcp", address)
			if err != nil {
				_ = outer.Close() // as if nothing listened, which is so
				return
			}
			join(outer, inner)
		}()
	}
}

// join carries bytes both ways until both ways have ended. One way may end
// first: `kubectl exec` closes its input and still reads the output.
func join(a, b net.Conn) {
	defer a.Close()
	defer b.Close()
	back := make(chan struct{})
	go func() {
		defer close(back)
		pour(a, b)
	}()
	pour(b, a)
	<-back
}

func pour(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if err != nil {
		_ = from.Close() // broken, not ended: the other way must end too
		_ = to.Close()
		return
	}
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}
