package address

import (
	"net/http"
	"net/url"
)

// Proxy is the Proxy of an [http.Transport] that asks the environment, and refuses a URL whose host is
// an address that is [Never] reached, since a proxy would connect to it. A name is resolved by the
// proxy, which has its own rules.
func Proxy(r *http.Request) (*url.URL, error) {
	if host := r.URL.Hostname(); !IsLocal(host) {
		if err := CheckHost(host); err != nil {
			return nil, err
		}
	}
	return http.ProxyFromEnvironment(r)
}
