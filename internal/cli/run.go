package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

type runOptions struct {
	target, file, from string
	name, prompt       string
	input              []string
}

func newRun(f *Factory) *cobra.Command {
	var o runOptions
	c := &cobra.Command{
		Use:   "run AGENT | workflow/NAME | -f FILE | --from schedule/NAME|run/NAME",
		Short: "Create a Run and print its name",
		Example: "  kubectl deckhand run reviewer -p 'Review the README.'\n" +
			"  kubectl deckhand run workflow/release --input version=1.4.0\n" +
			"  kubectl deckhand run --from run/review-x7k2p",
		Args: arguments(0, 1),
		RunE: func(c *cobra.Command, args []string) error {
			o.target = strings.Join(args, "")
			return runCreator{f, o}.create(c.Context())
		},
	}
	c.Flags().StringVarP(&o.file, "filename", "f", "", "File with the manifest of a Run; - for standard input")
	c.Flags().StringVar(&o.from, "from", "", "Do again what a Run did, run/NAME, or what a Schedule does, schedule/NAME")
	c.Flags().StringVar(&o.name, "name", "", "Name of the Run; by default it is generated")
	c.Flags().StringVarP(&o.prompt, "prompt", "p", "", "Prompt; - for standard input")
	c.Flags().StringArrayVar(&o.input, "input", nil, "KEY=VALUE of the input. VALUE is JSON, or else text; write 'KEY=\"3\"' for a text of digits")
	return c
}

// A runCreator creates the Run that a command line describes.
type runCreator struct {
	*Factory
	o runOptions
}

func (r runCreator) create(ctx context.Context) error {
	o := r.o
	if count(o.target, o.file, o.from) != 1 {
		return usageErrorf("say what to run, once: AGENT, workflow/NAME, -f FILE, --from schedule/NAME or --from run/NAME")
	}
	c, err := r.Client()
	if err != nil {
		return err
	}
	namespace, err := r.Namespace()
	if err != nil {
		return err
	}
	run, err := r.template(ctx, c, namespace)
	if err != nil {
		return err
	}
	if err := r.overwrite(run); err != nil {
		return err
	}
	if run.Namespace == "" {
		run.Namespace = namespace
	}
	if err := c.Create(ctx, run); err != nil {
		return err
	}
	fmt.Fprintf(r.Out, "run.deckhand.dev/%s created\n", run.Name)
	return nil
}

// template returns the Run before --prompt, --input and --name.
func (r runCreator) template(ctx context.Context, c client.Client, namespace string) (*v1alpha1.Run, error) {
	o := r.o
	if o.file != "" {
		return r.ofFile(o.file)
	}
	kind, name, found := strings.Cut(o.from, "/")
	switch {
	case o.target != "":
		return runOfTarget(o.target)
	case found && kind == "run":
		old, err := r.findRun(ctx, c, name)
		if err != nil {
			return nil, err
		}
		run := &v1alpha1.Run{Spec: old.Spec}
		run.Spec.DesiredState = ""
		run.GenerateName = generated(run)
		return run, nil
	case found && kind == "schedule":
		var schedule v1alpha1.Schedule
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &schedule); err != nil {
			return nil, err
		}
		t := schedule.Spec.RunTemplate
		run := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Labels: t.Labels}, Spec: t.Spec}
		run.GenerateName = generated(run)
		return run, nil
	}
	return nil, usageErrorf("--from %q: write run/NAME or schedule/NAME", o.from)
}

func runOfTarget(target string) (*v1alpha1.Run, error) {
	run := &v1alpha1.Run{Spec: v1alpha1.RunSpec{Agent: target}}
	switch kind, name, found := strings.Cut(target, "/"); {
	case found && kind == "workflow":
		run.Spec = v1alpha1.RunSpec{Workflow: name}
	case found && kind == "agent":
		run.Spec = v1alpha1.RunSpec{Agent: name}
	case found:
		return nil, usageErrorf("%q: write AGENT or workflow/NAME", target)
	}
	run.GenerateName = generated(run)
	return run, nil
}

func (r runCreator) ofFile(file string) (*v1alpha1.Run, error) {
	read := os.ReadFile
	if file == "-" {
		read = func(string) ([]byte, error) { return io.ReadAll(r.In) }
	}
	data, err := read(file)
	if err != nil {
		return nil, err
	}
	run := &v1alpha1.Run{}
	if err := yaml.UnmarshalStrict(data, run); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if run.Kind != "Run" || run.APIVersion != v1alpha1.GroupVersion.String() {
		return nil, fmt.Errorf("%s: it is not a Run of %s but %s of %s. Apply other kinds with kubectl apply -f", file, v1alpha1.GroupVersion, run.Kind, run.APIVersion)
	}
	return run, nil
}

// overwrite sets what the command line says about a Run.
func (r runCreator) overwrite(run *v1alpha1.Run) error {
	o := r.o
	if o.name != "" {
		run.Name, run.GenerateName = o.name, ""
	}
	if o.prompt != "" {
		prompt, err := r.argument(o.prompt)
		if err != nil {
			return err
		}
		run.Spec.Prompt = prompt
	}
	if len(o.input) == 0 {
		return nil
	}
	input, err := merged(run.Spec.Input, o.input)
	run.Spec.Input = input
	return err
}

// merged returns the input with values of the form KEY=VALUE added.
func merged(input *runtime.RawExtension, values []string) (*runtime.RawExtension, error) {
	object := map[string]json.RawMessage{}
	if input != nil {
		if err := json.Unmarshal(input.Raw, &object); err != nil {
			return nil, fmt.Errorf("reading the input: %w", err)
		}
	}
	for _, pair := range values {
		key, value, found := strings.Cut(pair, "=")
		if !found || key == "" {
			return nil, usageErrorf("--input %q: write KEY=VALUE", pair)
		}
		raw := json.RawMessage(value)
		if !json.Valid(raw) {
			text, err := json.Marshal(value)
			if err != nil {
				return nil, err
			}
			raw = text
		}
		object[key] = raw
	}
	data, err := json.Marshal(object)
	return &runtime.RawExtension{Raw: data}, err
}

// generated is what a generated name begins with. A dot is allowed in the name of an Agent, but
// not in that of a Run.
func generated(run *v1alpha1.Run) string {
	const longest = 40
	name := strings.ReplaceAll(run.Spec.Agent+run.Spec.Workflow, ".", "-")
	return strings.TrimRight(name[:min(len(name), longest)], "-") + "-"
}

func count(texts ...string) int {
	n := 0
	for _, text := range texts {
		if text != "" {
			n++
		}
	}
	return n
}
