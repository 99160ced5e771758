package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/deckhand-dev/deckhand/runner/tool"
)

const (
	defaultTimeout = 30 * time.Second
	maxTimeout     = 10 * time.Minute
)

// failed converts the error of a request to a result for the model. It returns an
// error only if the context of the call has ended.
func failed(ctx context.Context, to string, err error) (tool.Result, error) {
	if ctx.Err() != nil {
		return tool.Result{}, context.Cause(ctx)
	}
	to = show(to)
	var (
		redirected *redirectError
		wrong      *requestError
		host       *hostError
		addr       *addressError
	)
	switch {
	case errors.As(err, &redirected):
		return tool.Fail(fmt.Sprintf("%s was requested and answered, but %v", to, redirected), refusal(redirected.err)...), nil
	case errors.As(err, &wrong):
		return tool.Fail(fmt.Sprintf("'%s' cannot be requested: %s", to, wrong.problem)), nil
	case errors.As(err, &host), errors.As(err, &addr):
		return tool.Fail(fmt.Sprintf("%s was not requested: %v", to, refused(host, addr)), refusal(err)...), nil
	}
	return unreachable(to, err), nil
}

func refused(host *hostError, addr *addressError) error {
	if host != nil {
		return host
	}
	return addr
}

// refusal recommends what to do after an error of a check.
func refusal(err error) []string {
	var host *hostError
	var addr *addressError
	var policy *policyError
	switch {
	case errors.As(err, &policy):
		return policy.refused.Recommendations
	case errors.As(err, &host):
		return []string{"It may reach: " + show(strings.Join(host.allowed, ", ")), "Others are for the owner of this agent to allow."}
	case errors.As(err, &addr):
		return []string{
			"Only public addresses are reached, and those within the cluster that the owner of this agent allows by name.",
			"Do not try other ways to the same place: the address is judged, however it is written.",
		}
	case errors.Is(err, errDowngrade):
		return []string{"Request that URL itself if it does not matter that others can read along."}
	}
	return nil
}

// unreachable returns the failure for a request without a response.
func unreachable(to string, err error) tool.Result {
	var (
		dns  *net.DNSError
		cert *tls.CertificateVerificationError
		wrap *url.Error
		late net.Error
	)
	switch {
	case errors.Is(err, errSlow):
		return tool.Fail(to+" did not answer in time", "Ask for more time with timeoutSeconds, or for less.",
			"What the request was to change may have changed nevertheless: look before you repeat it.")
	case errors.As(err, &dns) && dns.IsNotFound:
		return tool.Fail(fmt.Sprintf("%s cannot be reached: there is no host %s", to, show(dns.Name)), "Check how the host is written.")
	case errors.As(err, &cert):
		return tool.Fail(fmt.Sprintf("%s cannot be reached: its certificate is not to be trusted: %s", to, show(cert.Err.Error())))
	case errors.As(err, &late) && late.Timeout():
		return tool.Fail(to+" cannot be reached: it did not take the connection in time", "Try it once more; it may be down.")
	}
	if errors.As(err, &wrap) {
		err = wrap.Err
	}
	return tool.Fail(fmt.Sprintf("%s cannot be reached: %s", to, show(err.Error())))
}

// shown bounds external text in a message, in bytes.
const shown = 300

// show returns external text for one line of a message: truncated and without
// control characters.
func show(s string) string {
	return clip(strings.Join(strings.Fields(printable(s)), " "), shown)
}

// printable removes characters that cannot be printed.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
}

// clip truncates a text to at most n bytes, at a character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
