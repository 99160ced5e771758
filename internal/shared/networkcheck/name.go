package networkcheck

import (
	"context"
	"net"
	"os"
	"strings"
)

// lookupService resolves the name of a Service.
func lookupService(ctx context.Context, host string) ([]string, error) {
	conf, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the file
	}
	return net.DefaultResolver.LookupHost(ctx, absolute(host, string(conf))) //nolint:wrapcheck // it names the host
}

// absolute returns the absolute name of a Service whose name ends with .svc. With a relative name, a pod first looks up
// Services in its own namespace, and in a namespace called svc. The kubelet writes the domain of the cluster as search
// domain svc.DOMAIN; in a namespace called svc it writes svc.svc.DOMAIN, too.
func absolute(host, resolvConf string) string {
	service, is := strings.CutSuffix(host, ".svc")
	var suffix string
	for _, domain := range searched(resolvConf) {
		if strings.HasPrefix(domain, "svc.") && (suffix == "" || len(domain) < len(suffix)) {
			suffix = domain
		}
	}
	if !is || suffix == "" {
		return host
	}
	return service + "." + strings.TrimSuffix(suffix, ".") + "."
}

// searched are the search domains of a resolv.conf.
func searched(resolvConf string) []string {
	var domains []string
	for line := range strings.Lines(resolvConf) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] == "search" {
			domains = fields[1:] // the last line counts
		}
	}
	return domains
}
