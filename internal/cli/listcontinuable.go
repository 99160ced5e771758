package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// A continuableRun is a Run that can be continued, with its volume.
type continuableRun struct {
	v1alpha1.Run
	kept keptVolume
}

// listContinuable prints the Runs that can be continued, and until when.
func (l lister) listContinuable(ctx context.Context, chosen runFilter) error {
	c, err := l.Client()
	if err != nil {
		return err
	}
	runs, err := l.continuable(ctx, c, chosen)
	if err != nil {
		return err
	}
	runs = newest(l, runs, func(r continuableRun) metav1.ObjectMeta { return r.ObjectMeta })
	switch l.o.output {
	case outputName:
		for i := range runs {
			fmt.Fprintln(l.Out, "run.deckhand.dev/"+runs[i].Name)
		}
		return nil
	case outputJSON, outputYAML:
		return l.printObjects(runs)
	}
	if len(runs) == 0 {
		fmt.Fprintln(l.Err, "No Runs found that can be continued. A Run keeps its conversation and its files if its Agent has workspace.durability Volume, for retention.volume after its end")
		return nil
	}
	return l.printContinuable(runs)
}

// continuable returns the chosen Runs that can be continued.
func (l lister) continuable(ctx context.Context, c client.Client, chosen runFilter) ([]continuableRun, error) {
	options, err := l.selection(l.o.allNamespaces, l.o.selector)
	if err != nil {
		return nil, err
	}
	runs, err := listRuns(ctx, c, options...)
	if err != nil {
		return nil, err
	}
	claims, err := l.claims(ctx, c)
	if err != nil {
		return nil, err
	}
	var out []continuableRun
	for i := range runs {
		run := &runs[i]
		if !chosen.has(factsOfRun(run)) || run.Status.Attempt == nil {
			continue
		}
		claim := claims[types.NamespacedName{Namespace: run.Namespace, Name: run.Status.Attempt.VolumeClaim}]
		kept, can, err := keptVolumeOf(ctx, c, run, claim, l.Now())
		if err != nil {
			return nil, err
		}
		if can {
			out = append(out, continuableRun{*run, kept})
		}
	}
	return out, nil
}

// claims returns the PersistentVolumeClaims beside the Runs.
func (l lister) claims(ctx context.Context, c client.Client) (map[types.NamespacedName]*corev1.PersistentVolumeClaim, error) {
	options, err := l.selection(l.o.allNamespaces, "")
	if err != nil {
		return nil, err
	}
	var all corev1.PersistentVolumeClaimList
	if err := c.List(ctx, &all, options...); err != nil {
		return nil, err
	}
	byName := map[types.NamespacedName]*corev1.PersistentVolumeClaim{}
	for i := range all.Items {
		byName[client.ObjectKeyFromObject(&all.Items[i])] = &all.Items[i]
	}
	return byName, nil
}

func (l lister) printContinuable(runs []continuableRun) error {
	columns := []string{"NAME", "TARGET", "STATE", "STEPS", "TOKENS", "COST", "KEPT-UNTIL", "AGE"}
	if l.o.allNamespaces {
		columns = slices.Insert(columns, 0, "NAMESPACE")
	}
	t := newTable(l.Out, columns...)
	for i := range runs {
		run := &runs[i]
		p := progressOf(&run.Run)
		cells := []string{
			run.Name, target(&run.Run), reason(&run.Run), strconv.FormatInt(p.Counts.Steps, 10), strconv.FormatInt(p.Usage.TotalTokens, 10),
			p.Usage.Cost, run.kept.text(), l.Since(run.CreationTimestamp),
		}
		if l.o.allNamespaces {
			cells = slices.Insert(cells, 0, run.Namespace)
		}
		t.row(cells...)
	}
	return t.print()
}

// printObjects prints whole Runs.
func (l lister) printObjects(runs []continuableRun) error {
	list := make([]v1alpha1.Run, 0, len(runs)) // as JSON, no Runs are an empty list
	for i := range runs {
		list = append(list, runs[i].Run)
	}
	return l.printRuns(list)
}
