package egress

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// A namespace that refuses to let its policy go does not keep those of others.
func TestSweepGoesOnAfterARefusal(t *testing.T) {
	stub := &policies{stubborn: "a", in: []string{"a", "b"}}
	f := New(stub, stub, Options{Servers: PeersPorts, Now: func() time.Time { return time.Unix(0, 0).Add(time.Hour) }})
	err := f.Sweep(t.Context())
	if !errors.Is(err, errStubborn) {
		t.Errorf("Sweep() = %v", err)
	}
	if diff := cmp.Diff([]string{"b"}, stub.gone); diff != "" {
		t.Errorf("policies that went (-want +got):\n%s", diff)
	}
}

var errStubborn = errors.New("no")

// policies is a cluster of old policies that no pod needs.
type policies struct {
	client.Client

	stubborn string // the namespace that keeps its own
	in, gone []string
}

func (p *policies) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if out, is := list.(*networkingv1.NetworkPolicyList); is {
		for _, ns := range p.in {
			out.Items = append(out.Items, networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{
				Namespace: ns, Name: Name("x"), Labels: map[string]string{v1alpha1.LabelEgress: "x"},
			}})
		}
	}
	return nil
}

func (p *policies) Delete(_ context.Context, o client.Object, _ ...client.DeleteOption) error {
	if o.GetNamespace() == p.stubborn {
		return errStubborn
	}
	p.gone = append(p.gone, o.GetNamespace())
	return nil
}
