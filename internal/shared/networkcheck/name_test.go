package networkcheck

import "testing"

// A namespace called svc must not answer for the operator.
func TestAbsolute(t *testing.T) {
	const kubelet = "nameserver 10.0.0.10\nsearch team.svc.cluster.local svc.cluster.local cluster.local example.com\noptions ndots:5\n"
	for name, tc := range map[string]struct{ host, conf, want string }{
		"a Service":                 {"deckhand-check.deckhand-system.svc", kubelet, "deckhand-check.deckhand-system.svc.cluster.local."},
		"another domain":            {"check.system.svc", "search a.svc.k8s.example svc.k8s.example k8s.example svc.corp\n", "check.system.svc.k8s.example."},
		"a namespace called svc":    {"check.system.svc", "search svc.svc.cluster.local svc.cluster.local cluster.local\n", "check.system.svc.cluster.local."},
		"a host":                    {"check.example.com", kubelet, "check.example.com"},
		"a pod without cluster DNS": {"check.system.svc", "nameserver 10.0.0.1\nsearch example.com\n", "check.system.svc"},
		"a domain of the node":      {"check.system.svc", "search svc.corp example.com\n", "check.system.svc"},
		"no search list":            {"check.system.svc", "", "check.system.svc"},
		"a line that is no search":  {"check.system.svc", "options search svc.example\n", "check.system.svc"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := absolute(tc.host, tc.conf); got != tc.want {
				t.Errorf("absolute(%q) = %q, want %q", tc.host, got, tc.want)
			}
		})
	}
}
