package ready

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/listprices"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

func TestPricesOfAModelAreShown(t *testing.T) {
	known := func(m *v1alpha1.Model) {
		m.Spec.Provider, m.Spec.Endpoint, m.Spec.ModelID, m.Spec.Prices = v1alpha1.ProviderOpenAI, "", "gpt-5", nil
	}
	for want, model := range map[v1alpha1.PriceSource]*v1alpha1.Model{
		"Model":   gen.Model(),
		"Catalog": gen.Model(known),
		"Unknown": gen.Model(func(m *v1alpha1.Model) { m.Spec.Prices = nil }),
	} {
		if got := checkModel(model, modelRefs{}, gen.Noon).prices; got != want {
			t.Errorf("prices of %s: %s, want %s", model.Spec.ModelID, got, want)
		}
	}
}

func TestCheckModel(t *testing.T) {
	extra := func(text string) func(*v1alpha1.Model) {
		return func(m *v1alpha1.Model) {
			m.Spec.Inference = &v1alpha1.Inference{Extra: &runtime.RawExtension{Raw: []byte(text)}}
		}
	}
	backed := gen.Model(func(m *v1alpha1.Model) { m.Spec.Fallbacks = []v1alpha1.ObjectName{"gpt"} })
	gpt := gen.Model(func(m *v1alpha1.Model) { m.Name = "gpt" })
	back := gen.Model(func(m *v1alpha1.Model) { m.Name, m.Spec.Fallbacks = "gpt", []v1alpha1.ObjectName{"sonnet"} })
	cases := map[string]struct {
		model  *v1alpha1.Model
		others map[string]*v1alpha1.Model
		status metav1.ConditionStatus
		reason string
		says   string
	}{
		"well formed":                      {gen.Model(), nil, metav1.ConditionTrue, v1alpha1.ReasonReady, "Valid"},
		"extra parameters that fit":        {gen.Model(extra(`{"a":1}`)), nil, metav1.ConditionTrue, v1alpha1.ReasonReady, ""},
		"extra parameters that are long":   {gen.Model(extra(`{"a":"` + strings.Repeat("a", 5000) + `"}`)), nil, metav1.ConditionFalse, v1alpha1.ReasonInvalid, "at most 4096"},
		"extra parameters that are a list": {gen.Model(extra(`[1]`)), nil, metav1.ConditionFalse, v1alpha1.ReasonInvalid, "must be an object"},
		"a fallback that is there":         {backed, gen.Objects(backed, gpt).Models, metav1.ConditionTrue, v1alpha1.ReasonReady, ""},
		"a fallback that is not there":     {backed, gen.Objects(backed).Models, metav1.ConditionFalse, v1alpha1.ReasonNotFound, "create it, or remove it from spec.fallbacks"},
		"a fallback that leads back":       {backed, gen.Objects(backed, back).Models, metav1.ConditionFalse, v1alpha1.ReasonCycle, "sonnet -> gpt -> sonnet"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := checkModel(tc.model, modelRefs{fallbacks: tc.others}, gen.Noon).ready
			if got.Status != tc.status || got.Reason != tc.reason || !strings.Contains(got.Message, tc.says) {
				t.Errorf("checkModel() = %+v", got)
			}
		})
	}
}

func TestListOfPricesIsShown(t *testing.T) {
	model := gen.Model(func(m *v1alpha1.Model) {
		m.Spec.Provider, m.Spec.Endpoint, m.Spec.ModelID, m.Spec.Prices = v1alpha1.ProviderDeepSeek, "", "deepseek-v4-pro", nil
	})
	if list := checkModel(model, modelRefs{}, gen.Noon).list; list == nil || list.Source == "" || len(list.Date) != len("2026-09-23") {
		t.Errorf("a Model of the catalog has the list %+v", list)
	}
	model.Spec.Prices = &v1alpha1.Prices{Input: "1USD", Output: "1USD", Tiers: []v1alpha1.PriceTier{{Above: "2M", Input: "1USD", Output: "1USD"}, {Above: "1M", Input: "1USD", Output: "1USD"}}}
	found := checkModel(model, modelRefs{}, gen.Noon)
	if found.list != nil || found.ready.Reason != v1alpha1.ReasonInvalid || !strings.Contains(found.ready.Message, "spec.prices.tiers[1].above is 1M") {
		t.Errorf("tiers out of order: %+v", found)
	}
}

// A list of prices that is not used is told on the Models that would use it.
func TestAListOfPricesThatIsNotUsedIsTold(t *testing.T) {
	t.Cleanup(func() { listprices.Use(nil) })
	listprices.Reject(errors.New("ConfigMap ops/prices: row 2 is wrong" + strings.Repeat(".", 5000)))
	without := gen.Model(func(m *v1alpha1.Model) { m.Spec.Prices = nil })
	if got := checkModel(without, modelRefs{}, gen.Noon).ready; got.Status != metav1.ConditionTrue || !strings.Contains(got.Message, "is not used, and what was known before holds: ConfigMap ops/prices: row 2 is wrong") || len(got.Message) > 2048 {
		t.Errorf("a Model without prices: %+v", got)
	}
	if got := checkModel(gen.Model(), modelRefs{}, gen.Noon).ready; strings.Contains(got.Message, "ops/prices") {
		t.Errorf("a Model with prices of its own: %+v", got)
	}
}

func TestAListOfPricesReconcilesAllObjectsOnce(t *testing.T) {
	s := NewPriceSignal()
	s.Send()
	s.Send() // it does not block
	for _, name := range []string{"Model", "Agent", "Workflow"} {
		if n := len(s.kinds[name]); n != 1 {
			t.Errorf("%d signals for %s, want 1", n, name)
		}
	}
}
