// Package dns is a DNS server for the Services of a cluster, with no more than tests need.
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
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	zone = ".svc.cluster.local."
	ttl  = 5 // seconds: a Service that was made anew must be found anew
)

// Main serves until a signal ends it, and returns the exit code. It answers over UDP. A name that is not a Service does
// not exist for it, because its network leads nowhere else. It has no names of pods, and no addresses of IPv6.
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
	services, endpoints := factory.Core().V1().Services(), factory.Discovery().V1().EndpointSlices()
	synced := []cache.InformerSynced{services.Informer().HasSynced, endpoints.Informer().HasSynced}
	names := records{services: services.Lister(), endpoints: endpoints.Lister()}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
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
		if answer, err := names.reply(buf[:n]); err == nil {
			_, _ = conn.WriteTo(answer, from)
		}
	}
}

// records looks up the names of a cluster.
type records struct {
	services  corelisters.ServiceLister
	endpoints discoverylisters.EndpointSliceLister
}

// reply answers one query. A message that is no query gets no answer.
func (r records) reply(query []byte) ([]byte, error) {
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
	bodies, found := r.lookup(strings.ToLower(question.Name.String()))
	if !found {
		message.RCode = dnsmessage.RCodeNameError
	}
	for _, body := range bodies {
		if _, v4 := body.(*dnsmessage.AResource); v4 && question.Type != dnsmessage.TypeA {
			continue // the name exists, but has no address of this kind
		}
		message.Answers = append(message.Answers, dnsmessage.Resource{
			Header: dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET, TTL: ttl},
			Body:   body,
		})
	}
	return message.Pack()
}

// lookup finds the records of <service>.<namespace>.svc.cluster.local. A Service without an address of its own has the
// addresses of its ready pods.
func (r records) lookup(fqdn string) (bodies []dnsmessage.ResourceBody, found bool) {
	name, namespace, ok := strings.Cut(strings.TrimSuffix(fqdn, zone), ".")
	if !ok || !strings.HasSuffix(fqdn, zone) {
		return nil, false
	}
	service, err := r.services.Services(namespace).Get(name)
	if err != nil {
		return nil, false
	}
	switch {
	case service.Spec.Type == corev1.ServiceTypeExternalName:
		target, err := dnsmessage.NewName(strings.TrimSuffix(service.Spec.ExternalName, ".") + ".")
		return []dnsmessage.ResourceBody{&dnsmessage.CNAMEResource{CNAME: target}}, err == nil
	case service.Spec.ClusterIP == corev1.ClusterIPNone:
		return r.ofPods(namespace, name), true
	}
	return appendAddress(nil, service.Spec.ClusterIP), true
}

// ofPods returns the addresses of the ready pods of a Service.
func (r records) ofPods(namespace, service string) (bodies []dnsmessage.ResourceBody) {
	all, err := r.endpoints.EndpointSlices(namespace).List(labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: service}))
	if err != nil {
		return nil
	}
	for _, s := range all {
		for _, e := range s.Endpoints {
			if ready := e.Conditions.Ready; ready != nil && !*ready {
				continue
			}
			for _, ip := range e.Addresses {
				bodies = appendAddress(bodies, ip)
			}
		}
	}
	return bodies
}

func appendAddress(bodies []dnsmessage.ResourceBody, address string) []dnsmessage.ResourceBody {
	if ip := net.ParseIP(address).To4(); ip != nil {
		return append(bodies, &dnsmessage.AResource{A: [4]byte(ip)})
	}
	return bodies
}
