package httpapi

import (
	"crypto/x509"
	"errors"
	"net/http"

	"github.com/deckhand-dev/deckhand/runner/internal/address"
	"github.com/deckhand-dev/deckhand/runner/model"
)

// untrusted returns the error for a connection that fails until a configuration is changed, or nil. An expired
// certificate does not count, because it is renewed sooner or later.
func (c *Call) untrusted(err error) error {
	_, isUnknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, isOther := errors.AsType[x509.HostnameError](err)
	refused, isRefused := errors.AsType[*address.RefusedError](err)
	switch {
	case isUnknown || isOther:
		return &model.CertificateError{Message: c.Clean(err).Error(), Unknown: isUnknown}
	case isRefused:
		return &model.AddressError{Message: refused.Error()}
	case errors.Is(err, http.ErrSchemeMismatch):
		c.contentType = "HTTP to a request with HTTPS"
		return c.final("write http:// in it, or start the server with TLS")
	}
	return nil
}
