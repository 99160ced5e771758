// Command k8s has all programs of a Kubernetes in one file: etcd, the control plane, kubelet and kube-proxy, kubectl,
// and a small DNS server. The name with which it is started selects the component, so a folder of links to it is a
// whole installation. The name may also be the first argument: `k8s kubectl get pods`.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	_ "time/tzdata" // CronJob time zones

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	"github.com/deckhand-dev/deckhand/test/cluster/internal/dns"
)

// A program runs one component on the process's arguments and returns its
// exit code.
type program func() int

var programs = map[string]program{
	"etcd":                    func() int { etcdmain.Main(os.Args); return 0 },
	"kube-apiserver":          command(apiserver.NewAPIServerCommand),
	"kube-controller-manager": command(controllers.NewControllerManagerCommand),
	"kube-scheduler":          command(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	"kubelet":                 runKubelet,
	"kube-proxy":              command(proxy.NewProxyCommand),
	"kubectl":                 runKubectl,
	"cluster-dns":             dns.Main,
}

func main() {
	name := filepath.Base(os.Args[0])
	if _, known := programs[name]; !known && len(os.Args) > 1 {
		name, os.Args = os.Args[1], os.Args[1:]
	}
	run, known := programs[name]
	if !known {
		fmt.Fprintf(os.Stderr, "%s: start this program by one of the names %s\n", name, names())
		os.Exit(2)
	}
	os.Exit(run())
}

// command makes a program of one of Kubernetes' cobra commands.
func command(build func() *cobra.Command) program {
	return func() int { return cli.Run(build()) }
}

func runKubelet() int {
	return cli.Run(kubelet.NewKubeletCommand(context.Background()))
}

// runKubectl does what kubectl's own main does: it prints errors its own way.
func runKubectl() int {
	if _, err := logs.GlogSetter(kubectl.GetLogVerbosity(os.Args)); err != nil {
		fmt.Fprintln(os.Stderr, "setting log verbosity:", err)
	}
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
	return 0
}

func names() string {
	return strings.Join(slices.Sorted(maps.Keys(programs)), ", ")
}
