package cluster

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
)

// removeStrays removes the files that containerd, CNI and the kubelet write to paths that cannot be configured. A file
// that cannot be removed does no harm.
func (h host) removeStrays(ctx context.Context) {
	for _, f := range h.strays(ctx) {
		_ = os.Remove(f)
	}
	// Folders that others use too are not empty, and stay.
	for _, dir := range []string{
		"/run/containerd/s", "/run/containerd", "/var/log/containers",
		"/var/lib/cni/results", "/var/lib/cni", "/var/lib/kubelet/device-plugins", "/var/lib/kubelet",
	} {
		_ = os.Remove(dir)
	}
}

// strays lists the files: the sockets of shims, the links to logs of pods, the state of CNI, and the kubelet's socket
// for devices.
func (h host) strays(ctx context.Context) []string {
	var found []string
	for _, address := range glob(h.Path("run", "containerd*", "io.containerd.runtime.v2.task", "*", "*", "address")) {
		if data, err := os.ReadFile(address); err == nil {
			found = append(found, strings.TrimPrefix(strings.TrimSpace(string(data)), "unix://"))
		}
	}
	for _, l := range glob("/var/log/containers/*") {
		if target, err := os.Readlink(l); err == nil && strings.HasPrefix(target, h.Dir+"/") {
			found = append(found, l)
		}
	}
	for _, result := range glob("/var/lib/cni/results/*") {
		if data, err := os.ReadFile(result); err == nil && bytes.Contains(data, []byte(h.Dir+"/")) {
			found = append(found, result)
		}
	}
	const devices = "/var/lib/kubelet/device-plugins/"
	if socketOpen(devices+"kubelet.sock")(ctx) != nil { // no other kubelet serves it
		found = append(found, devices+"kubelet.sock", devices+"kubelet_internal_checkpoint", devices+"DEPRECATION")
	}
	return found
}

func glob(pattern string) []string {
	found, _ := filepath.Glob(pattern) // the only error is a bad pattern
	return found
}
