package dns

import (
	"net/netip"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

func TestReply(t *testing.T) {
	services := lister(t, map[string]corev1.ServiceSpec{
		"web":      {Type: corev1.ServiceTypeClusterIP, ClusterIP: "10.96.1.2"},
		"headless": {Type: corev1.ServiceTypeClusterIP, ClusterIP: corev1.ClusterIPNone},
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
		"a headless Service exists":             {name: "headless.demo.svc.cluster.local.", kind: dnsmessage.TypeA},
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

func ask(t *testing.T, services listers.ServiceLister, name string, kind dnsmessage.Type) (string, dnsmessage.RCode) {
	t.Helper()
	query := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}},
	}
	packed, err := query.Pack()
	if err != nil {
		t.Fatal(err)
	}
	answer, err := reply(services, packed)
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
	for _, a := range m.Answers {
		switch body := a.Body.(type) {
		case *dnsmessage.AResource:
			return netip.AddrFrom4(body.A).String(), m.RCode
		case *dnsmessage.CNAMEResource:
			return body.CNAME.String(), m.RCode
		}
	}
	return "", m.RCode
}

func lister(t *testing.T, specs map[string]corev1.ServiceSpec) listers.ServiceLister {
	t.Helper()
	index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for name, spec := range specs {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: name}, Spec: spec}
		if err := index.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	return listers.NewServiceLister(index)
}
