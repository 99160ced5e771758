package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/runflags"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
)

// An explainedKind is a kind that why explains.
type explainedKind struct {
	kind       string
	newObject  func() client.Object
	conditions func(client.Object) []metav1.Condition
}

func kindOf[T any, O interface {
	*T
	client.Object
}](kind string, conditions func(O) []metav1.Condition) explainedKind {
	return explainedKind{kind, func() client.Object { return O(new(T)) }, func(o client.Object) []metav1.Condition {
		of, is := o.(O)
		if !is {
			return nil
		}
		return conditions(of)
	}}
}

var explainedKinds = []explainedKind{
	kindOf("Run", func(o *v1alpha1.Run) []metav1.Condition { return o.Status.Conditions }),
	kindOf("Agent", func(o *v1alpha1.Agent) []metav1.Condition { return o.Status.Conditions }),
	kindOf("Model", func(o *v1alpha1.Model) []metav1.Condition { return o.Status.Conditions }),
	kindOf("Toolset", func(o *v1alpha1.Toolset) []metav1.Condition { return o.Status.Conditions }),
	kindOf("Workflow", func(o *v1alpha1.Workflow) []metav1.Condition { return o.Status.Conditions }),
	kindOf("Schedule", func(o *v1alpha1.Schedule) []metav1.Condition { return o.Status.Conditions }),
	kindOf("Decision", func(o *v1alpha1.Decision) []metav1.Condition { return o.Status.Conditions }),
}

// explain explains a Run, or an object of another kind: NAME, KIND/NAME or KIND NAME, as of kubectl.
func (e explainer) explain(ctx context.Context, args []string, output string) error {
	k, name, err := explained(args)
	switch {
	case err != nil:
		return err
	case output != "":
		return e.printExplained(ctx, k, name, output)
	case k.kind == "Run":
		return e.why(ctx, name)
	}
	return e.whyObject(ctx, k, name)
}

// kindsOfKubernetes are kinds that users may name instead of a Run.
var kindsOfKubernetes = []string{"pod", "po", "event", "job", "deployment", "configmap", "cm", "secret", "node", "pvc", "persistentvolumeclaim", "networkpolicie", "netpol", "service", "namespace", "ns"}

// isPlural reports whether a word is the plural of a kind, which is no name of one object.
func isPlural(word string) bool {
	word = strings.ToLower(word)
	if strings.HasSuffix(word, "s") && slices.Contains(kindsOfKubernetes, strings.TrimSuffix(word, "s")) {
		return true
	}
	return slices.ContainsFunc(explainedKinds, func(k explainedKind) bool { return strings.EqualFold(word, k.kind+"s") })
}

// explained returns the kind and the name of the object that arguments name.
func explained(args []string) (explainedKind, string, error) {
	kind, name := runflags.CutKind(strings.Join(args, "/"))
	if kind == "" {
		kind = "run"
		if isPlural(name) {
			return explainedKind{}, "", exit.Usagef("why explains one object, and %s is a kind. To list Runs: kubectl deckhand list. To list objects of another kind: kubectl get %s", name, strings.ToLower(name))
		}
	}
	if strings.Contains(name, "/") {
		return explainedKind{}, "", exit.Usagef("why explains one object: write RUN, or KIND/NAME such as agent/%s", name[strings.LastIndexByte(name, '/')+1:])
	}
	var kinds []string
	for _, k := range explainedKinds {
		lower := strings.ToLower(k.kind)
		if lower == kind {
			return k, name, nil
		}
		kinds = append(kinds, lower+"/")
	}
	kind = strings.ToLower(kind)
	if slices.Contains(kindsOfKubernetes, strings.TrimSuffix(kind, "s")) {
		return explainedKind{}, "", exit.Usagef("why does not explain %s, which kubectl describes: kubectl describe %s %s. Of a Run, why shows its pods and events: kubectl deckhand why RUN", kind, kind, name)
	}
	return explainedKind{}, "", exit.Usagef("why does not explain the kind %q: write RUN, or a name behind one of %s", kind, strings.Join(kinds, ", "))
}

// printExplained prints an object with its pods and events as JSON or YAML.
func (e explainer) printExplained(ctx context.Context, k explainedKind, name, output string) error {
	c, err := e.Client()
	if err != nil {
		return err
	}
	o := k.newObject()
	if err := e.find(ctx, c, k.kind, name, o); err != nil {
		return err
	}
	o.GetObjectKind().SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(k.kind))
	explained := struct {
		Object client.Object  `json:"object"`
		Pods   []corev1.Pod   `json:"pods,omitempty"`
		Events []corev1.Event `json:"events,omitempty"`
	}{Object: o, Events: e.eventsOf(ctx, c, o).Items}
	if run, is := o.(*v1alpha1.Run); is {
		if explained.Pods, err = podReaderOf(e.Factory, c).list(ctx, run); err != nil {
			fmt.Fprintln(e.Err, "Pods are not shown: "+explain(err))
		}
	}
	return printValue(e.Out, output, explained)
}

// whyObject prints the conditions and events of an object.
func (e explainer) whyObject(ctx context.Context, k explainedKind, name string) error {
	c, err := e.Client()
	if err != nil {
		return err
	}
	o := k.newObject()
	if err := e.find(ctx, c, k.kind, name, o); err != nil {
		return err
	}
	fmt.Fprintf(e.Out, "%s %s/%s:\n", k.kind, o.GetNamespace(), o.GetName())
	terminal.Field(e.Out, "Age", e.Since(o.GetCreationTimestamp()))
	conditions := slices.DeleteFunc(slices.Clone(k.conditions(o)), func(c metav1.Condition) bool {
		return c.Type == v1alpha1.ConditionReconciling || c.Type == v1alpha1.ConditionStalled // they repeat the others for kstatus
	})
	for i := range conditions {
		e.printCondition(&conditions[i], o.GetGeneration())
	}
	if len(conditions) == 0 {
		terminal.Field(e.Out, "State", "the operator has not read it yet. If this stays, see whether the operator works: kubectl get pods -A -l app.kubernetes.io/name=deckhand")
	}
	e.printEvents(ctx, c, o)
	return nil
}

// printCondition prints a condition of an object of some generation.
func (e explainer) printCondition(c *metav1.Condition, generation int64) {
	text := string(c.Status) + ", " + c.Reason
	if c.ObservedGeneration != 0 && c.ObservedGeneration < generation {
		text += ", of an earlier spec: the operator has not read the present one yet"
	}
	terminal.Field(e.Out, c.Type, text)
	terminal.Block(e.Out, "Message", c.Message)
}
