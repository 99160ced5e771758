package lint

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/calendar"
	"github.com/deckhand-dev/deckhand/internal/revision/refs"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/revision/specsize"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod/podtask"
	"github.com/deckhand-dev/deckhand/internal/shared/skill"
	"github.com/deckhand-dev/deckhand/internal/shared/template"
	"github.com/deckhand-dev/deckhand/internal/workflow"
)

// checkReady checks an object that the API server accepts with the checks of the operator: whether it is Ready or, if
// it is a Run, can start.
func (l *linter) checkReady(ctx context.Context, o *object) error {
	l.warnOfMissing(o)
	if problem := specsize.Problem(o.content["spec"]); problem != "" && o.kind() != "Run" {
		return errors.New(problem)
	}
	switch o.kind() {
	case "Agent":
		return checkTyped(o, func(a *v1alpha1.Agent) error {
			a, objects, err := l.withObjects(ctx, a)
			l.warn(o, snapshot.Warnings(a, objects)...)
			if err == nil {
				_, err = snapshot.Of(a, objects)
				err = withPolicyProblems(err, snapshot.PolicyProblems(a, objects))
			}
			return errors.Join(err, l.checkSkills(a))
		})
	case "Model":
		return checkTyped(o, func(m *v1alpha1.Model) error {
			l.warn(o, snapshot.ModelWarnings(m.Spec)...)
			models, err := refs.OfModel(ctx, l.reader().read, m)
			return errors.Join(err, asError(snapshot.CheckModel(m, models)))
		})
	case "Toolset":
		return checkTyped(o, func(t *v1alpha1.Toolset) error { return asError(snapshot.CheckToolset(t)) })
	case "Workflow":
		return checkTyped(o, func(w *v1alpha1.Workflow) error {
			v, err := l.workflowOf(ctx, w)
			if v != nil {
				l.warn(o, workflow.Warnings(v)...)
			}
			return err
		})
	case "Schedule":
		return checkTyped(o, func(s *v1alpha1.Schedule) error {
			l.warnOfRun(o, "spec.runTemplate.spec", s.Spec.RunTemplate.Spec)
			return l.checkSchedule(ctx, s)
		})
	case "Run":
		return checkTyped(o, func(r *v1alpha1.Run) error {
			l.warnOfRun(o, "spec", r.Spec)
			return errors.Join(l.checkRun(ctx, r), l.checkContinued(ctx, o, r))
		})
	default:
		return nil
	}
}

// withPolicyProblems adds the errors of further rules to the error for which an Agent is not Ready.
func withPolicyProblems(err error, problems []string) error {
	for _, p := range problems {
		if err == nil || p != err.Error() {
			err = errors.Join(err, errors.New(p))
		}
	}
	return err
}

// checkTyped calls a check with the typed object.
func checkTyped[T any, P interface {
	*T
	refs.Object
}](o *object, check func(P) error) error {
	typed := P(new(T))
	if err := o.convert(typed); err != nil {
		return err
	}
	return check(typed)
}

func asError(p *snapshot.NotReadyError) error {
	if p == nil {
		return nil // and not a nil of a concrete type
	}
	return p
}

func (l *linter) reader() *reader { return &reader{linter: l, missing: map[string]bool{}} }

// warnOfRun adds warnings about the prompt and the limits of a Run, whose spec is a field of an object.
func (l *linter) warnOfRun(o *object, field string, run v1alpha1.RunSpec) {
	if warning := template.ForeignWarning(field+".prompt", run.Prompt); warning != "" {
		l.warn(o, warning)
	}
	if run.Limits != nil && run.Agent != "" { // nodes of a Workflow may work at the same time
		l.warn(o, snapshot.LimitWarnings(field+".limits", *run.Limits)...)
	}
}

// warn adds warnings about an object, with the fields that they name.
func (l *linter) warn(o *object, messages ...string) {
	for _, m := range messages {
		path, rest := o.locate(m)
		l.add(o, Warning, path, rest)
	}
}

// revisionOf returns the revision of an Agent; an error if it is not Ready.
func (l *linter) revisionOf(ctx context.Context, a *v1alpha1.Agent) (*snapshot.Revision, error) {
	a, objects, err := l.withObjects(ctx, a)
	if err != nil {
		return nil, err
	}
	return snapshot.Of(a, objects)
}

// withObjects returns a copy of an Agent, with the objects of the files that it refers to.
func (l *linter) withObjects(ctx context.Context, a *v1alpha1.Agent) (*v1alpha1.Agent, snapshot.Objects, error) {
	r, a := l.reader(), a.DeepCopy()
	objects, err := refs.OfAgent(ctx, r.read, a)
	if err == nil {
		r.allowAnyTool(a, objects.Agents)
	}
	return a, objects, err
}

// workflowOf returns the revision of a Workflow. It returns an error if the Workflow is not Ready, and nil if the files
// lack an object that its nodes name: then the types of its expressions are unknown.
func (l *linter) workflowOf(ctx context.Context, w *v1alpha1.Workflow) (*workflow.Revision, error) {
	r := l.reader()
	objects, err := workflow.From(ctx, r.read, w)
	if err != nil {
		return nil, err
	}
	for _, of := range objects.Workflows {
		if of == nil {
			return nil, nil //nolint:nilnil // a missing Workflow is no problem of this one
		}
	}
	for name, a := range objects.Agents {
		if r.missing[name] {
			return nil, nil //nolint:nilnil // a missing Agent is no problem of the Workflow
		}
		r.allowAnyTool(a, objects.AgentObjects[name].Agents)
	}
	return workflow.Of(w, objects)
}

func (l *linter) checkSchedule(ctx context.Context, s *v1alpha1.Schedule) error {
	c, err := calendar.Read(s.Spec.Schedule, s.Spec.TimeZone)
	if err != nil {
		return err
	}
	return errors.Join(c.Check(l.now), within("spec.runTemplate.", l.checkRun(ctx, templateRun(s))))
}

// within adds the path of a Run to the path at the beginning of a message.
func within(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s%w", path, err)
}

// templateRun returns the Run that a Schedule creates.
func templateRun(s *v1alpha1.Schedule) *v1alpha1.Run {
	t := s.Spec.RunTemplate
	return &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Labels: t.Labels}, Spec: t.Spec}
}

// checkRun checks the input of a Run, if the Agent or Workflow is in the files and Ready.
func (l *linter) checkRun(ctx context.Context, run *v1alpha1.Run) error {
	if p := snapshot.CheckInputSize(run.Spec); p != nil {
		return p
	}
	if run.Spec.Workflow != "" {
		return l.checkWorkflowRun(ctx, run)
	}
	limits := v1alpha1.AgentLimits{}
	var a v1alpha1.Agent
	if l.get(ctx, run.Namespace, run.Spec.Agent, &a) {
		limits = a.Spec.Limits
		v, err := l.revisionOf(ctx, &a)
		if err == nil { // else the findings of the Agent say why
			if err := checkRevision(run.Spec, v); err != nil {
				return err
			}
		}
	}
	if problem := podtask.FirstProblem(run, snapshot.LimitsOf(limits)); problem != "" {
		return errors.New(problem)
	}
	return nil
}

// checkRevision finds why an Agent cannot do the work of a Run within its limits.
func checkRevision(run v1alpha1.RunSpec, v *snapshot.Revision) error {
	p := snapshot.CheckRun(run, v.Snapshot.Agent)
	if p == nil {
		p = snapshot.CheckLimits(run.Limits, snapshot.MostOfRevision(v), "Agent "+run.Agent)
	}
	if p == nil {
		p = snapshot.CheckCost(run.Limits, v.Snapshot.Models)
	}
	return asError(p)
}

func (l *linter) checkWorkflowRun(ctx context.Context, run *v1alpha1.Run) error {
	var w v1alpha1.Workflow
	if !l.get(ctx, run.Namespace, run.Spec.Workflow, &w) {
		return nil
	}
	v, err := l.workflowOf(ctx, &w)
	if v == nil || err != nil {
		return nil //nolint:nilerr // the findings of the Workflow say why
	}
	p, err := workflow.Compile(v)
	if err != nil {
		return err
	}
	if problem := p.CheckRun(run.Spec); problem != nil {
		return problem
	}
	if problem := snapshot.CheckLimits(run.Spec.Limits, snapshot.MostOfWorkflow(w.Spec.Limits), "Workflow "+run.Spec.Workflow); problem != nil {
		return problem
	}
	return asError(v.CheckCost(run.Spec.Limits))
}

// get reads an object of the files; false: it does not exist, or has errors.
func (l *linter) get(ctx context.Context, namespace, name string, into refs.Object) bool {
	o := l.find(kindOf(into), namespace, name)
	return o != nil && !o.invalid && l.reader().read(ctx, types.NamespacedName{Namespace: namespace, Name: name}, into) == nil
}

// checkSkills checks the skills of ConfigMaps that are in the files. The operator does not read them, and the Run would
// end.
func (l *linter) checkSkills(a *v1alpha1.Agent) error {
	var problems []error
	for i, s := range a.Spec.Skills {
		if s.ConfigMapRef == nil {
			continue
		}
		found := slices.IndexFunc(l.others, func(o *object) bool {
			return o.kind() == "ConfigMap" && o.name() == string(s.ConfigMapRef.Name) && (o.namespace() == a.Namespace || o.namespace() == "")
		})
		if found < 0 {
			continue
		}
		if _, err := skill.Parse(s.Name, []byte(text(l.others[found].content, "data", skill.File))); err != nil {
			problems = append(problems, fmt.Errorf("spec.skills[%d].configMapRef: ConfigMap %s: %w", i, s.ConfigMapRef.Name, err))
		}
	}
	return errors.Join(problems...)
}
