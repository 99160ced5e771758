package networkcheck

import (
	"context"
	"net"
	"os"
	"slices"
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
// Services in its own namespace, and in a namespace called svc. The kubelet writes DOMAIN of the cluster and svc.DOMAIN as
// search domains; in a namespace called svc it writes svc.svc.DOMAIN, too. Others are of the cluster node.
func absolute(host, resolvConf string) string {
	service, is := strings.CutSuffix(host, ".svc")
	domains := searched(resolvConf)
	for _, domain := range domains {
		cluster, isServices := strings.CutPrefix(domain, "svc.")
		if is && isServices && slices.Contains(domains, cluster) && !strings.HasPrefix(cluster, "svc.") {
			return service + ".svc." + strings.TrimSuffix(cluster, ".") + "."
		}
	}
	return host
}

// searched returns the search domains of a resolv.conf.
func searched(resolvConf string) []string {
	var domains []string
	for line := range strings.Lines(resolvConf) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] == "search" {
			domains = fields[1:] // the last line counts
		}
	}
	return domains
}
