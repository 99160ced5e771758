package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/runflags"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
)

// declaration reads the input that the Agent or Workflow of a Run declares. If that does not exist, it returns an
// error, because the Run would wait for it, unless the Run comes from a manifest. If an Agent is not Ready, it prints a
// note.
func (r runCreator) declaration(ctx context.Context, c client.Client, run *v1alpha1.Run) (runflags.Declaration, error) {
	kind, name := "Agent", run.Spec.Agent
	var agent v1alpha1.Agent
	var workflow v1alpha1.Workflow
	var into client.Object = &agent
	if run.Spec.Workflow != "" {
		kind, name, into = "Workflow", run.Spec.Workflow, &workflow
	}
	key := client.ObjectKey{Namespace: run.Namespace, Name: name}
	err := c.Get(ctx, key, into)
	isManifest := len(r.o.Files) > 0
	switch {
	case apierrors.IsForbidden(err):
		return runflags.Declaration{}, nil
	case apierrors.IsNotFound(err) && !isNotInstalled(err) && isManifest:
		return runflags.Declaration{Waits: fmt.Sprintf("%s %s not found in namespace %s; the Run waits until it exists", kind, name, run.Namespace)}, nil
	case apierrors.IsNotFound(err) && !isNotInstalled(err):
		if other := otherTarget(ctx, c, kind, key); other != "" {
			return runflags.Declaration{}, exit.Usagef("there is no %s %s in namespace %s, but %s: write %s", kind, name, run.Namespace, other, other)
		}
		return runflags.Declaration{}, notFound(ctx, c, kind, key)
	case err != nil:
		return runflags.Declaration{}, err
	case kind == "Agent":
		d := runflags.DeclarationOf(&agent)
		d.Waits, d.Ends = notReady(kind, name, agent.Status.Conditions), cannotBeContinued(&agent)
		return d, nil
	}
	return runflags.Declaration{Known: true, Input: workflow.Spec.Input, Most: snapshot.MostOfWorkflow(workflow.Spec.Limits), Waits: notReady(kind, name, workflow.Status.Conditions)}, nil
}

// otherTarget returns KIND/NAME of a Workflow with the name of a missing Agent, or of an Agent with the name of a
// missing Workflow; empty: there is none, or it cannot be read.
func otherTarget(ctx context.Context, c client.Client, missing string, key client.ObjectKey) string {
	var other client.Object = &v1alpha1.Workflow{}
	kind := "workflow"
	if missing == "Workflow" {
		kind, other = "agent", &v1alpha1.Agent{}
	}
	if c.Get(ctx, key, other) != nil {
		return ""
	}
	return kind + "/" + key.Name
}

// notReady returns a note that a Run waits because its Agent or Workflow is not Ready; empty: it is Ready, or the
// operator has not read it yet.
func notReady(kind, name string, conditions []metav1.Condition) string {
	ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status == metav1.ConditionTrue {
		return ""
	}
	return fmt.Sprintf("%s %s is not ready: %s; the Run waits until then", kind, name, strings.TrimSuffix(ready.Message, "."))
}

// cannotBeContinued returns a note that the Runs of an Agent cannot be continued, because they keep nothing after their
// end; empty: they can, or the chart decides and the operator has not read the Agent yet.
func cannotBeContinued(a *v1alpha1.Agent) string {
	isPod := a.Spec.Workspace.Durability == v1alpha1.DurabilityPod
	if durable := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionDurable); a.Spec.Workspace.Durability == "" && durable != nil {
		isPod = durable.Reason == v1alpha1.ReasonPodDurability
	}
	if !isPod {
		return ""
	}
	return fmt.Sprintf("This Run cannot be continued after its end: Agent %s has workspace.durability Pod", a.Name)
}

// ofFile returns the Run of a file.
func (r runCreator) ofFile(ctx context.Context, file string) (*v1alpha1.Run, error) {
	read := terminal.ReadFile
	if file == "-" {
		read = func(ctx context.Context, _ string) ([]byte, error) { return r.ReadInput(ctx) }
	}
	data, err := read(ctx, file)
	if err != nil {
		return nil, fmt.Errorf("%w: name a file with a Run, or - for standard input", err)
	}
	documents, err := splitDocuments(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(documents) != 1 {
		return nil, exit.Usagef("%s has %d objects: run -f takes a file with one Run. Apply other objects with kubectl apply -f", file, len(documents))
	}
	var is metav1.TypeMeta
	if err := yaml.Unmarshal(documents[0], &is); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if is.Kind != "Run" || is.APIVersion != v1alpha1.GroupVersion.String() {
		return nil, fmt.Errorf("%s: it is not a Run of %s but %s of %s. Apply other kinds with kubectl apply -f", file, v1alpha1.GroupVersion, cmp.Or(is.Kind, "nothing"), cmp.Or(is.APIVersion, "no version"))
	}
	run := &v1alpha1.Run{}
	if err := yaml.UnmarshalStrict(documents[0], run); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return run, nil
}

// splitDocuments returns the documents of YAML that are not empty.
func splitDocuments(data []byte) ([][]byte, error) {
	var out [][]byte
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		var content any
		if err := yaml.Unmarshal(document, &content); err != nil {
			return nil, err
		}
		if content != nil {
			out = append(out, document)
		}
	}
}

// setNamespace sets the namespace of a Run, unless its file has one. A different namespace in a flag is an error.
func (r runCreator) setNamespace(run *v1alpha1.Run) error {
	namespace, isFlag, err := r.config.Namespace()
	switch {
	case err != nil:
		return configError(err)
	case run.Namespace == "":
		run.Namespace = namespace
	case isFlag && run.Namespace != namespace:
		return exit.Usagef("the file says namespace %s, and --namespace says %s: leave out one of them", run.Namespace, namespace)
	}
	return nil
}
