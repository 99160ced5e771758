package modeltest

import (
	"cmp"
	"net"
	"net/http"

	"github.com/deckhand-dev/deckhand/runner/internal/model/frametest"
)

// faults has a handler for each kind of failure, which replaces the answer.
var faults = map[FaultKind]func(Fault, playback) http.HandlerFunc{
	FaultStatus: func(f Fault, p playback) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if f.RetryAfter != "" {
				w.Header().Set("Retry-After", f.RetryAfter)
			}
			p.wire.refuse(w, f.status(), f.message())
		}
	},
	FaultHTML: func(f Fault, _ playback) http.HandlerFunc {
		return answer("text/html", "<!DOCTYPE html><html><title>"+f.message()+"</title></html>")
	},
	FaultErrorBody: func(f Fault, p playback) http.HandlerFunc {
		if p.wire.framed {
			return answer(frametest.ContentType, f.exception())
		}
		return answer("application/json", f.body(p.wire))
	},
	FaultGarbage: func(_ Fault, p playback) http.HandlerFunc {
		if p.wire.framed {
			return answer(frametest.ContentType, "\x00\x00\x00\x40 garbage")
		}
		return answer("text/event-stream", "data: \x00\x01\xff garbage\n\n")
	},
	FaultReset: func(f Fault, p playback) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if f.After > 0 {
				p.before(f.After).serve(w, r)
			}
			hangUp(w)
		}
	},
	FaultCut: func(f Fault, p playback) http.HandlerFunc {
		return p.before(f.After).serve
	},
	FaultIdle: func(f Fault, p playback) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if f.After > 0 {
				p.before(f.After).serve(w, r)
			}
			<-r.Context().Done()
		}
	},
	FaultStreamError: func(f Fault, p playback) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			p.events(f.After).serve(w, r)
			if p.wire.framed {
				answer(frametest.ContentType, f.exception())(w, r)
				return
			}
			answer("text/event-stream", "data: "+f.body(p.wire)+"\n\n")(w, r)
		}
	},
}

// hangUp resets the connection, or, over HTTP/2, the stream.
func hangUp(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // HTTP/2: the stream is reset
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // without it the client sees a mere end
	}
	_ = conn.Close()
}

func (f Fault) message() string { return cmp.Or(f.Message, "scripted "+string(f.Kind)) }

func (f Fault) status() int { return cmp.Or(f.Status, http.StatusInternalServerError) }

func (f Fault) body(on *wire) string { return string(encode(on.failure(f.status(), f.message()))) }

func answer(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write([]byte(body)) // the client went away
	}
}
