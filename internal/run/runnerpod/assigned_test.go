package runnerpod

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// project is what OpenShift writes on a namespace.
var project = map[string]string{
	annotationUsers: "1000620000/10000", annotationGroups: "1000620000/10000,5000-5009", annotationLevel: "s0:c25,c10",
}

func chosenByCluster(in *Input) { in.Defaults.User = PodUserCluster }

// restricted assigns as the SecurityContextConstraints restricted-v2 do: the user to each container,
// the rest to the pod.
func restricted(p *corev1.Pod) {
	assignUser(p, 1000620000)
	group := int64(1000620000)
	p.Spec.SecurityContext.FSGroup = &group
	p.Spec.SecurityContext.SELinuxOptions = &corev1.SELinuxOptions{Level: "s0:c25,c10"}
}

func assignUser(p *corev1.Pod, user int64) {
	for _, all := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range all {
			all[i].SecurityContext.RunAsUser = &user
		}
	}
}

var assignments = map[string]struct {
	alter func(*corev1.Pod)
	want  string
}{
	"as restricted-v2 does": {alter: func(*corev1.Pod) {}},
	"the user of the pod in place of those of its containers": {alter: func(p *corev1.Pod) {
		p.Spec.SecurityContext.RunAsUser = p.Spec.Containers[0].SecurityContext.RunAsUser
		for _, all := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
			for i := range all {
				all[i].SecurityContext.RunAsUser = nil
			}
		}
	}},
	"the last user of the range":       {alter: func(p *corev1.Pod) { assignUser(p, 1000629999) }},
	"the user behind the range":        {alter: func(p *corev1.Pod) { assignUser(p, 1000630000) }, want: "container sandbox has another user"},
	"the user before the range":        {alter: func(p *corev1.Pod) { assignUser(p, 1000619999) }, want: "container sandbox has another user"},
	"root":                             {alter: func(p *corev1.Pod) { assignUser(p, 0) }, want: "container sandbox has another user"},
	"a user of the groups":             {alter: func(p *corev1.Pod) { assignUser(p, 5000) }, want: "container sandbox has another user"},
	"root for the sandbox":             {alter: func(p *corev1.Pod) { setUser(p, 0) }, want: "container sandbox has another user"},
	"another user for the sandbox":     {alter: func(p *corev1.Pod) { setUser(p, 1000620001) }, want: "container sandbox has another user"},
	"no user for the sandbox":          {alter: func(p *corev1.Pod) { sandboxOf(p).SecurityContext.RunAsUser = nil }, want: "container sandbox has another user"},
	"a group of the pod":               {alter: func(p *corev1.Pod) { id := int64(1000620000); p.Spec.SecurityContext.RunAsGroup = &id }, want: "its user or group is another"},
	"a group of the sandbox":           {alter: func(p *corev1.Pod) { id := int64(5000); sandboxOf(p).SecurityContext.RunAsGroup = &id }, want: "container sandbox has another security context"},
	"a group of volumes of the groups": {alter: func(p *corev1.Pod) { id := int64(5009); p.Spec.SecurityContext.FSGroup = &id }},
	"a group of volumes out of range":  {alter: func(p *corev1.Pod) { id := int64(5010); p.Spec.SecurityContext.FSGroup = &id }, want: "another group of its volumes"},
	"root's group of volumes":          {alter: func(p *corev1.Pod) { id := int64(0); p.Spec.SecurityContext.FSGroup = &id }, want: "another group of its volumes"},
	"no group of volumes":              {alter: func(p *corev1.Pod) { p.Spec.SecurityContext.FSGroup = nil }},
	"supplemental groups":              {alter: func(p *corev1.Pod) { p.Spec.SecurityContext.SupplementalGroups = []int64{5000, 1000620007} }},
	"a supplemental group of others":   {alter: func(p *corev1.Pod) { p.Spec.SecurityContext.SupplementalGroups = []int64{5000, 6000} }, want: "other supplemental groups"},
	"the supplemental group of root":   {alter: func(p *corev1.Pod) { p.Spec.SecurityContext.SupplementalGroups = []int64{0} }, want: "other supplemental groups"},
	"another level": {
		alter: func(p *corev1.Pod) { p.Spec.SecurityContext.SELinuxOptions.Level = "s0:c1,c2" },
		want:  "other SELinux options",
	},
	"a type of SELinux": {
		alter: func(p *corev1.Pod) { p.Spec.SecurityContext.SELinuxOptions.Type = "spc_t" },
		want:  "other SELinux options",
	},
	"the level of a container": {alter: func(p *corev1.Pod) {
		sandboxOf(p).SecurityContext.SELinuxOptions = &corev1.SELinuxOptions{Level: "s0:c25,c10"}
	}},
	"a type of SELinux of a container": {
		alter: func(p *corev1.Pod) {
			sandboxOf(p).SecurityContext.SELinuxOptions = &corev1.SELinuxOptions{Type: "spc_t"}
		},
		want: "container sandbox has another security context",
	},
	"no security context of the pod": {alter: func(p *corev1.Pod) { p.Spec.SecurityContext = nil }},
	"privileges":                     {alter: func(p *corev1.Pod) { yes := true; sandboxOf(p).SecurityContext.Privileged = &yes }, want: "container sandbox has another security context"},
	"the network of the node":        {alter: func(p *corev1.Pod) { p.Spec.HostNetwork = true }, want: "it has the network of its node"},
}

func setUser(p *corev1.Pod, id int64) { sandboxOf(p).SecurityContext.RunAsUser = &id }

func TestTheClusterMayAssignUsers(t *testing.T) {
	for name, tc := range assignments {
		t.Run(name, func(t *testing.T) {
			asked := equipped(t, chosenByCluster)
			made := asked.DeepCopy()
			restricted(made)
			tc.alter(made)
			before := made.DeepCopy()
			got := Changes(asked, made, nil, AssignableIn(project))
			if got != tc.want && (tc.want == "" || !strings.Contains(got, tc.want)) {
				t.Errorf("Changes() = %q, want %q", got, tc.want)
			}
			if diff := cmp.Diff(before, made); diff != "" {
				t.Errorf("it changed the pod: %s", diff)
			}
		})
	}
}

// What is assigned in a pod whose user Deckhand chose, or in a namespace without ranges, is a change.
func TestTheClusterMayNotAssignElsewhere(t *testing.T) {
	for name, tc := range map[string]struct {
		install     func(*Input)
		annotations map[string]string
	}{
		"Deckhand chooses":        {plainly, project},
		"no annotations":          {chosenByCluster, nil},
		"a range that is no text": {chosenByCluster, map[string]string{annotationUsers: "all"}},
	} {
		asked := equipped(t, tc.install)
		made := asked.DeepCopy()
		restricted(made)
		if got := Changes(asked, made, nil, AssignableIn(tc.annotations)); !strings.Contains(got, "container sandbox has another") {
			t.Errorf("%s: Changes() = %q", name, got)
		}
	}
}

func TestRangesOfANamespace(t *testing.T) {
	for text, tc := range map[string]struct{ has, not []int64 }{
		"1000620000/10000":            {[]int64{1000620000, 1000629999}, []int64{1000619999, 1000630000}},
		"1000620000-1000629999":       {[]int64{1000620000, 1000629999}, []int64{1000619999, 1000630000}},
		"5/1, 9-10":                   {[]int64{5, 9, 10}, []int64{0, 4, 6, 8, 11}},
		"0/10":                        {[]int64{1, 9}, []int64{0, 10}},
		"2147483640/100":              {[]int64{2147483647}, []int64{2147483639}},
		"7/0":                         {nil, []int64{6, 7}},
		"9-5":                         {nil, []int64{5, 7, 9}},
		"":                            {nil, []int64{0, 1}},
		"-5/10":                       {nil, []int64{1, 5}},
		"9999999999/10":               {nil, []int64{1}},
		"5":                           {nil, []int64{5}},
		"5/99999999999999999999, 7/1": {[]int64{7}, []int64{5, 6}},
	} {
		a := AssignableIn(map[string]string{annotationUsers: text})
		for _, id := range tc.has {
			if !a.user(&id) || !a.group(&id) { // without ranges of groups those of users count
				t.Errorf("%q lacks %d", text, id)
			}
		}
		for _, id := range tc.not {
			if a.user(&id) {
				t.Errorf("%q has %d", text, id)
			}
		}
	}
	if id := int64(7); AssignableIn(map[string]string{annotationUsers: "5/5", annotationGroups: ""}).group(&id) {
		t.Error("empty ranges of groups have a group")
	}
}

// Later pods ask for the user of the first one, and so does the pod that reads the files.
func TestLaterPodsKeepTheUser(t *testing.T) {
	in := newInput(t, gen.Run(), gen.Agent(gen.Coder, gen.Durable), gen.Toolsets())
	chosenByCluster(&in)
	first := New(in)
	if s := first.Spec.SecurityContext; s.RunAsUser != nil || s.RunAsGroup != nil || s.FSGroup != nil {
		t.Errorf("the first pod asks for %+v", s)
	}
	for _, c := range containersIn(first) { // the home of the image's user may be closed to others
		if c.WorkingDir != "/" {
			t.Errorf("container %s starts in %q", c.Name, c.WorkingDir)
		}
	}
	made := first.DeepCopy()
	restricted(made)
	claim := NewVolumeClaim(in)
	if s := FilesPodOf(claim).Pod(in.Run, claim.Name, WorkspaceFolder, "").Spec.SecurityContext; s.RunAsUser != nil || s.RunAsGroup != nil || s.FSGroup != nil {
		t.Errorf("before the user is known, the pod that reads files asks for %+v", s)
	}
	claim.Annotations[v1alpha1.AnnotationFileOwner] = OwnerOf(made).String()
	in.VolumeClaim = claim
	for name, pod := range map[string]*corev1.Pod{
		"the next pod":             New(in),
		"the pod that reads files": FilesPodOf(claim).Pod(in.Run, claim.Name, WorkspaceFolder, ""),
	} {
		s := pod.Spec.SecurityContext
		if s.RunAsGroup != nil || s.RunAsUser == nil || *s.RunAsUser != 1000620000 || s.FSGroup == nil || *s.FSGroup != 1000620000 {
			t.Errorf("%s asks for %+v", name, s)
		}
	}
	if got := Changes(New(in), made, nil, AssignableIn(project)); got != "" {
		t.Errorf("the first pod is compared with what is asked for now: %s", got)
	}
	assignUser(made, 1000620001)
	if got := Changes(New(in), made, nil, AssignableIn(project)); !strings.Contains(got, "container sandbox has another user") {
		t.Errorf("another user of the range: Changes() = %q", got)
	}
}

// An Agent may name the user. The groups are the cluster's.
func TestAnAgentNamesTheUserOfTheCluster(t *testing.T) {
	user := int64(1000620042)
	in := newInput(t, gen.Run(), gen.Agent(gen.Coder, gen.Durable, func(a *v1alpha1.Agent) {
		a.Spec.PodTemplate = &v1alpha1.PodTemplate{RunAsUser: &user}
	}), gen.Toolsets())
	chosenByCluster(&in)
	claim := NewVolumeClaim(in)
	for _, pod := range []*corev1.Pod{New(in), FilesPodOf(claim).Pod(in.Run, claim.Name, WorkspaceFolder, "")} {
		if s := pod.Spec.SecurityContext; s.RunAsUser == nil || *s.RunAsUser != user || s.RunAsGroup != nil || s.FSGroup != nil {
			t.Errorf("it asks for %+v", s)
		}
	}
	made := New(in)
	made.Spec.SecurityContext.FSGroup = new(int64(1000620000))
	if got := Changes(New(in), made, nil, AssignableIn(project)); got != "" {
		t.Errorf("Changes() = %q", got)
	}
	made.Spec.SecurityContext.RunAsUser = new(int64(1000620000))
	if got := Changes(New(in), made, nil, AssignableIn(project)); !strings.Contains(got, "container sandbox has another user") {
		t.Errorf("another user: Changes() = %q", got)
	}
}

func TestFileOwner(t *testing.T) {
	for text, want := range map[string]*FileOwner{
		"1000:2000": {1000, 2000}, "1000": {User: 1000},
		"": nil, "0": nil, "0:5": nil, "5:0": nil, "5:": nil, ":5": nil, "-1": nil, "root": nil, "5:6:7": nil, "99999999999": nil,
	} {
		claim := &corev1.PersistentVolumeClaim{}
		claim.Annotations = map[string]string{v1alpha1.AnnotationFileOwner: text}
		got := FileOwnerOf(claim)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: -want +got:\n%s", text, diff)
		}
		if got != nil && got.String() != text {
			t.Errorf("%q is written %q", text, got)
		}
	}
	if FileOwnerOf(nil) != nil {
		t.Error("no claim has an owner")
	}
	a := AssignableIn(project)
	for owner, want := range map[FileOwner]bool{
		{1000620000, 1000620000}: true, {1000620000, 5000}: true, {User: 1000620000}: true,
		{1000620000, 6000}: false, {5000, 1000620000}: false,
	} {
		if a.Allows(owner) != want {
			t.Errorf("%v is allowed: %t", owner, !want)
		}
	}
}

func TestUnassigned(t *testing.T) {
	asked := equipped(t, chosenByCluster)
	made := asked.DeepCopy()
	if got := Unassigned(asked, made); got != asked.Spec.InitContainers[0].Name {
		t.Errorf("nothing is assigned: %q", got)
	}
	restricted(made)
	if got := Unassigned(asked, made); got != "" {
		t.Errorf("all is assigned: %q", got)
	}
	sandboxOf(made).SecurityContext.RunAsUser = nil
	if got := Unassigned(asked, made); got != SandboxContainer {
		t.Errorf("the sandbox has no user: %q", got)
	}
	alone := firstPod(t)
	alone.Spec.SecurityContext.RunAsUser = nil
	if got := Unassigned(alone, alone); got != "" {
		t.Errorf("a runner that is alone has the user of its image: %q", got)
	}
}

// Another value of podUser does not change the user of files that exist.
func TestFilesKeepTheirUser(t *testing.T) {
	const projects, own = int64(1000620000), int64(4711)
	asOwn := func(a *v1alpha1.Agent) { a.Spec.PodTemplate = &v1alpha1.PodTemplate{RunAsUser: new(own)} }
	for name, tc := range map[string]struct {
		owner                string
		agent                func(*v1alpha1.Agent)
		user, group, fsGroup int64
		workingDir           string
	}{
		"of the cluster":                         {"1000620000:1000620000", func(*v1alpha1.Agent) {}, projects, projects, projects, "/"},
		"of the cluster, without a group":        {"1000620000", func(*v1alpha1.Agent) {}, projects, projects, 0, "/"},
		"of Deckhand":                            {"65532:65532", func(*v1alpha1.Agent) {}, uid, uid, uid, ""},
		"of the Agent":                           {"4711:4711", asOwn, own, own, own, ""},
		"of another Agent that shares the files": {"65532:65532", asOwn, own, own, own, ""},
		"of a user that is not recorded":         {"", func(*v1alpha1.Agent) {}, uid, uid, uid, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := newInput(t, gen.Run(), gen.Agent(gen.Coder, gen.Durable, tc.agent), gen.Toolsets())
			in.VolumeClaim = NewVolumeClaim(in)
			in.VolumeClaim.Annotations[v1alpha1.AnnotationFileOwner] = tc.owner
			pod := New(in)
			s, sandbox := pod.Spec.SecurityContext, sandboxOf(pod)
			if *s.RunAsUser != tc.user || *s.RunAsGroup != tc.group || s.FSGroup == nil != (tc.fsGroup == 0) || s.FSGroup != nil && *s.FSGroup != tc.fsGroup {
				t.Errorf("it asks for %+v", s)
			}
			if sandbox.WorkingDir != tc.workingDir {
				t.Errorf("the sandbox starts in %q", sandbox.WorkingDir)
			}
			if got := Changes(pod, New(in), nil, Assignable{}); got != "" {
				t.Errorf("Changes() = %q", got)
			}
		})
	}
}

// A claim records the user that Deckhand chose. What the cluster chooses is recorded with its first pod.
func TestAClaimRecordsTheUserOfDeckhand(t *testing.T) {
	in := newInput(t, gen.Run(), gen.Agent(gen.Coder, gen.Durable), gen.Toolsets())
	if got := NewVolumeClaim(in).Annotations[v1alpha1.AnnotationFileOwner]; got != "65532:65532" {
		t.Errorf("the owner is %q", got)
	}
	chosenByCluster(&in)
	if got := FileOwnerOf(NewVolumeClaim(in)); got != nil {
		t.Errorf("the owner is %s", got)
	}
	in.VolumeClaim = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationFileOwner: "65532:65532"}}}
	if s := New(in).Spec.SecurityContext; *s.RunAsUser != uid || *s.FSGroup != uid || s.RunAsGroup != nil {
		t.Errorf("with files of Deckhand's user, a pod of the cluster asks for %+v", s)
	}
}
