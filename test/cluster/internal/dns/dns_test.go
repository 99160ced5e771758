package dns

import (
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
)

func TestReply(t *testing.T) {
	services := listed(t, map[string]corev1.ServiceSpec{
		"web":      {Type: corev1.ServiceTypeClusterIP, ClusterIP: "10.96.1.2"},
		"headless": {Type: corev1.ServiceTypeClusterIP, ClusterIP: corev1.ClusterIPNone},
		"alone":    {Type: corev1.ServiceTypeClusterIP, ClusterIP: corev1.ClusterIPNone},
		"outside":  {Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"},
	})
	none := dnsmessage.RCodeNameError
	cases := map[string]struct {
		name string
		kind dnsmessage.Type
		want string
		code dnsmessage.RCode
	}{
		"a Service has its address":             {name: "web.demo.svc.cluster.local.", kind: dnsmessage.TypeA, want: "10.96.1.2"},
		"letters may be of either case":         {name: "Web.demo.SVC.cluster.local.", kind: dnsmessage.TypeA, want: "10.96.1.2"},
		"it exists, without an IPv6 address":    {name: "web.demo.svc.cluster.local.", kind: dnsmessage.TypeAAAA},
		"a headless Service has ready pods":     {name: "headless.demo.svc.cluster.local.", kind: dnsmessage.TypeA, want: "10.0.0.1 10.0.0.3"},
		"its pods have no IPv6 address":         {name: "headless.demo.svc.cluster.local.", kind: dnsmessage.TypeAAAA},
		"a headless Service without pods":       {name: "alone.demo.svc.cluster.local.", kind: dnsmessage.TypeA},
		"an external name is an alias":          {name: "outside.demo.svc.cluster.local.", kind: dnsmessage.TypeA, want: "example.com."},
		"no such Service":                       {name: "nope.demo.svc.cluster.local.", kind: dnsmessage.TypeA, code: none},
		"no such namespace":                     {name: "web.nope.svc.cluster.local.", kind: dnsmessage.TypeA, code: none},
		"a search path tries names like this":   {name: "web.demo.svc.svc.cluster.local.", kind: dnsmessage.TypeA, code: none},
		"a name of the Internet does not exist": {name: "example.com.", kind: dnsmessage.TypeA, code: none},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, code := ask(t, services, tc.name, tc.kind)
			if got != tc.want || code != tc.code {
				t.Errorf("answer %q (%v), want %q (%v)", got, code, tc.want, tc.code)
			}
		})
	}
}

func ask(t *testing.T, names records, name string, kind dnsmessage.Type) (string, dnsmessage.RCode) {
	t.Helper()
	query := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}},
	}
	packed, err := query.Pack()
	if err != nil {
		t.Fatal(err)
	}
	answer, err := names.reply(packed)
	if err != nil {
		t.Fatal(err)
	}
	var m dnsmessage.Message
	if err := m.Unpack(answer); err != nil {
		t.Fatal(err)
	}
	if m.ID != 7 || !m.Response {
		t.Errorf("header %+v is no response to the query", m.Header)
	}
	var all []string
	for _, a := range m.Answers {
		switch body := a.Body.(type) {
		case *dnsmessage.AResource:
			all = append(all, netip.AddrFrom4(body.A).String())
		case *dnsmessage.CNAMEResource:
			all = append(all, body.CNAME.String())
		}
	}
	return strings.Join(all, " "), m.RCode
}

// listed has Services, and three pods of headless, the second of which is not ready.
func listed(t *testing.T, specs map[string]corev1.ServiceSpec) records {
	t.Helper()
	newIndex := func() cache.Indexer {
		return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	}
	services, endpoints, yes, no := newIndex(), newIndex(), true, false
	for name, spec := range specs {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: name}, Spec: spec}
		if err := services.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "headless-x", Labels: map[string]string{discoveryv1.LabelServiceName: "headless"}},
		Endpoints: []discoveryv1.Endpoint{
			{Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: &yes}},
			{Addresses: []string{"10.0.0.2"}, Conditions: discoveryv1.EndpointConditions{Ready: &no}},
			{Addresses: []string{"10.0.0.3", "fd00::3"}},
		},
	}
	if err := endpoints.Add(slice); err != nil {
		t.Fatal(err)
	}
	return records{services: corelisters.NewServiceLister(services), endpoints: discoverylisters.NewEndpointSliceLister(endpoints)}
}
