// Package dns answers for a cluster's Services, in as little as tests need.
package dns

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/net/dns/dnsmessage"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	zone = ".svc.cluster.local."
	ttl  = 5 // seconds: a Service that was made anew must be found anew
)

// Main serves until it is told to stop, and returns the exit code. It answers
// over UDP and denies every name that is no Service: the network it serves leads
// nowhere else. No headless Services, no pods.
func Main() int {
	flags := flag.NewFlagSet("cluster-dns", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "how to reach the API server")
	address := flags.String("listen", "127.0.0.1:53", "where to answer")
	_ = flags.Parse(os.Args[1:]) // exits by itself
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, *kubeconfig, *address); err != nil {
		fmt.Fprintln(os.Stderr, "cluster-dns:", err)
		return 1
	}
	return 0
}

func serve(ctx context.Context, kubeconfig, address string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("reading kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making client: %w", err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	services := factory.Core().V1().Services()
	synced := services.Informer().HasSynced
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced) {
		return ctx.Err()
	}
	var listener net.ListenConfig
	conn, err := listener.ListenPacket(ctx, "udp", address)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	go func() { <-ctx.Done(); _ = conn.Close() }()
	for buf := make([]byte, 1500); ; {
		n, from, err := conn.ReadFrom(buf)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // we were told to stop
		}
		if err != nil {
			continue // one client's ICMP error is not the end for the others
		}
		if answer, err := reply(services.Lister(), buf[:n]); err == nil {
			_, _ = conn.WriteTo(answer, from)
		}
	}
}

// reply answers one query. A message that is no query gets no answer.
func reply(services listers.ServiceLister, query []byte) ([]byte, error) {
	var parser dnsmessage.Parser
	header, err := parser.Start(query)
	if err != nil {
		return nil, err
	}
	question, err := parser.Question()
	if err != nil {
		return nil, err
	}
	message := dnsmessage.Message{
		Header: dnsmessage.Header{
			ID: header.ID, Response: true, Authoritative: true,
			RecursionDesired: header.RecursionDesired, RecursionAvailable: true,
		},
		Questions: []dnsmessage.Question{question},
	}
	body, found := lookup(services, strings.ToLower(question.Name.String()))
	if !found {
		message.RCode = dnsmessage.RCodeNameError
	}
	if _, v4 := body.(*dnsmessage.AResource); v4 && question.Type != dnsmessage.TypeA {
		body = nil // the name exists, but has no address of this kind
	}
	if body != nil {
		message.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET, TTL: ttl},
			Body:   body,
		}}
	}
	return message.Pack()
}

// lookup finds the record of <service>.<namespace>.svc.cluster.local. A Service
// without an address of its own exists, and has no record.
func lookup(services listers.ServiceLister, fqdn string) (body dnsmessage.ResourceBody, found bool) {
	name, namespace, ok := strings.Cut(strings.TrimSuffix(fqdn, zone), ".")
	if !ok || !strings.HasSuffix(fqdn, zone) {
		return nil, false
	}
	service, err := services.Services(namespace).Get(name)
	if err != nil {
		return nil, false
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		target, err := dnsmessage.NewName(strings.TrimSuffix(service.Spec.ExternalName, ".") + ".")
		return &dnsmessage.CNAMEResource{CNAME: target}, err == nil
	}
	if ip := net.ParseIP(service.Spec.ClusterIP).To4(); ip != nil {
		return &dnsmessage.AResource{A: [4]byte(ip)}, true
	}
	return nil, true
}
