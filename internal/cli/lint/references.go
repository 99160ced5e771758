package lint

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/refs"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
)

// A referenceField names objects of a kind.
type referenceField struct {
	path *regexp.Regexp
	kind string
}

// referenceFields are the fields of each kind that name objects of the API.
var referenceFields = map[string][]referenceField{
	"Agent": {
		{regexp.MustCompile(`^spec\.(routes\[\d+\]\.)?model$`), "Model"},
		{regexp.MustCompile(`^spec\.tools\[\d+\]\.agent$`), "Agent"},
		{regexp.MustCompile(`^spec\.tools\[\d+\]\.toolset$`), "Toolset"},
	},
	"Model": {{regexp.MustCompile(`^spec\.fallbacks\[\d+\]$`), "Model"}},
	"Workflow": {
		{regexp.MustCompile(`^spec\.(nodes|finally)\[\d+\]\.agent$`), "Agent"},
		{regexp.MustCompile(`^spec\.(nodes|finally)\[\d+\]\.workflow$`), "Workflow"},
	},
	"Run": {
		{regexp.MustCompile(`^spec\.agent$`), "Agent"},
		{regexp.MustCompile(`^spec\.workflow$`), "Workflow"},
	},
	"Schedule": {
		{regexp.MustCompile(`^spec\.runTemplate\.spec\.agent$`), "Agent"},
		{regexp.MustCompile(`^spec\.runTemplate\.spec\.workflow$`), "Workflow"},
	},
}

// eachReference calls a function for the references of an object, in the order of their paths.
func (o *object) eachReference(visit func(path, kind, name string)) {
	for _, path := range sortedKeys(o.nodes) {
		for _, field := range referenceFields[o.kind()] {
			if field.path.MatchString(path) {
				visit(path, field.kind, o.nodes[path].value.Value)
			}
		}
	}
}

// warnOfMissing warns of references to objects that are not in the files.
func (l *linter) warnOfMissing(o *object) {
	o.eachReference(func(path, kind, name string) {
		if name != "" && l.find(kind, o.namespace(), name) == nil {
			l.report.Missing = append(l.report.Missing, kind+" "+name)
			l.add(o, Warning, path, fmt.Sprintf("%s %s is not in these files: what depends on it is not checked", kind, name))
		}
	})
}

// find returns an object of the files, or nil. A manifest without a namespace matches any namespace.
func (l *linter) find(kind, namespace, name string) *object {
	if o := l.byName[objectName{kind, namespace, name}]; o != nil {
		return o
	}
	return l.byName[objectName{kind, "", name}]
}

// An objectName identifies an object.
type objectName struct{ kind, namespace, name string }

// index indexes the objects by name, and warns about duplicates.
func (l *linter) index() {
	l.byName = map[objectName]*object{}
	for _, o := range l.objects {
		key := objectName{o.kind(), o.namespace(), text(o.content, "metadata", "name")}
		if key.name == "" {
			continue // it is generated
		}
		if first := l.byName[key]; first != nil {
			l.add(o, Warning, "metadata.name", fmt.Sprintf("%s:%d has an object with this kind and name, too: rename one, because the later replaces the other", first.file, first.line("")))
			continue
		}
		l.byName[key] = o
	}
}

// A reader reads the objects of the files, for the functions of the operator. For a missing Agent, Model or Toolset it
// returns a valid one, so that findings are only about the objects in the files.
type reader struct {
	linter *linter
	// missing has the Agents that are not in the files. They may have any tools and any input.
	missing map[string]bool
}

// read implements refs.Reader.
func (r *reader) read(_ context.Context, key types.NamespacedName, into refs.Object) error {
	kind := kindOf(into)
	if o := r.linter.find(kind, key.Namespace, key.Name); o != nil && o.decoded != nil {
		if o.convert(into) == nil {
			into.SetNamespace(key.Namespace)
			return nil
		}
	}
	into.SetName(key.Name)
	into.SetNamespace(key.Namespace)
	switch into := into.(type) {
	case *v1alpha1.Agent:
		r.missing[key.Name] = true
	case *v1alpha1.Model:
		into.Spec = v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAI, ModelID: "unknown", Prices: &v1alpha1.Prices{Input: "0USD", Output: "0USD"}}
	case *v1alpha1.Toolset:
		into.Spec.HTTP = &v1alpha1.HTTPServer{URL: "https://unknown.example"}
	default:
		return apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource("").GroupResource(), key.Name)
	}
	return nil
}

func kindOf(o refs.Object) string {
	switch o.(type) {
	case *v1alpha1.Agent:
		return "Agent"
	case *v1alpha1.Model:
		return "Model"
	case *v1alpha1.Toolset:
		return "Toolset"
	default:
		return "Workflow"
	}
}

// allowAnyTool lets Agents name tools that no object in the files has, because missing Agents may have them, and custom
// runner images may have any.
func (r *reader) allowAnyTool(agent *v1alpha1.Agent, agents map[string]*v1alpha1.Agent) {
	known := true
	for name := range agents {
		known = known && !r.missing[name]
	}
	if known {
		return
	}
	image := "unknown"
	if agent.Spec.PodTemplate != nil && agent.Spec.PodTemplate.RunnerImage != "" {
		image = agent.Spec.PodTemplate.RunnerImage
	}
	for _, a := range agents {
		if a.Spec.PodTemplate == nil {
			a.Spec.PodTemplate = &v1alpha1.PodTemplate{}
		}
		if a.Spec.PodTemplate.RunnerImage == "" {
			a.Spec.PodTemplate.RunnerImage = image
		}
	}
}

// checkContinued finds why a Run cannot continue another Run of the files. Most Runs that are continued are not in
// them.
func (l *linter) checkContinued(ctx context.Context, o *object, run *v1alpha1.Run) error {
	source := l.sourceOf(run)
	if source == nil {
		return nil
	}
	chain := l.chainOf(run)
	refused := func(format string, args ...any) error {
		return fmt.Errorf("spec.continueFrom.run: "+format, args...)
	}
	switch {
	case run.Spec.Workflow != "" && source.Spec.Workflow != run.Spec.Workflow:
		return refused("Run %s is no Run of Workflow %s, which can retry its own Runs only: name one of them", source.Name, run.Spec.Workflow)
	case run.Spec.Workflow != "" && !snapshot.SameInput(run.Spec, source.Spec):
		return refused("Run %s has another spec.input: write the same in both", source.Name)
	case run.Spec.Workflow == "" && source.Spec.Workflow != "":
		return refused("Run %s is a Run of Workflow %s, and only Runs of Agents can be continued: name a Run of an Agent", source.Name, source.Spec.Workflow)
	case source.Spec.User != run.Spec.User:
		return refused("Run %s has spec.user %q, and this Run %q: write the same in both", source.Name, source.Spec.User, run.Spec.User)
	case slices.Contains(chain, run.Name):
		return refused("Runs %s continue each other, so that none can begin: continue a Run that has ended", strings.Join(chain, ", "))
	case len(chain) > v1alpha1.MaxContinued:
		return refused("it continues %d Runs, one after the other, and a Run can continue at most %d: create a Run without continueFrom", len(chain), v1alpha1.MaxContinued)
	}
	var agent v1alpha1.Agent
	if source.Spec.Agent == "" || !l.get(ctx, run.Namespace, source.Spec.Agent, &agent) {
		return nil
	}
	switch agent.Spec.Workspace.Durability { //nolint:exhaustive // Volume keeps what is needed
	case v1alpha1.DurabilityPod:
		return refused("Run %s keeps no conversation and no files, because Agent %s has workspace.durability Pod: write Volume there", source.Name, agent.Name)
	case "":
		l.warn(o, fmt.Sprintf("spec.continueFrom.run: Run %s keeps no conversation and no files unless runDefaults.durability of the chart is Volume: write workspace.durability: Volume in Agent %s", source.Name, agent.Name))
	}
	return nil
}

// sourceOf returns the Run of the files that a Run continues; nil: it continues none, or that is not in the files.
func (l *linter) sourceOf(run *v1alpha1.Run) *v1alpha1.Run {
	if run.Spec.ContinueFrom == nil {
		return nil
	}
	o := l.find("Run", run.Namespace, run.Spec.ContinueFrom.Run)
	var source v1alpha1.Run
	if o == nil || o.decoded == nil || o.convert(&source) != nil {
		return nil
	}
	return &source
}

// chainOf returns the names of the Runs that a Run continues, the last first, as far as they are in the files. Each is
// in it once, the Run itself too if it is in a cycle.
func (l *linter) chainOf(run *v1alpha1.Run) []string {
	var names []string
	for at := l.sourceOf(run); at != nil && !slices.Contains(names, at.Name); at = l.sourceOf(at) {
		names = append(names, at.Name)
	}
	return names
}
