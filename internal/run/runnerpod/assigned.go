package runnerpod

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// PodUser selects who chooses the user and the groups of pods.
type PodUser string

const (
	// PodUserDeckhand is user and group 65532, or podTemplate.runAsUser of the Agent.
	PodUserDeckhand PodUser = "Deckhand"
	// PodUserCluster leaves the choice to the admission of the cluster, as on OpenShift.
	PodUserCluster PodUser = "Cluster"
)

// workingDir returns where programs start; empty: where their image sets it. Images often start in the home of their
// own user, which other users may not enter.
func (u PodUser) workingDir() string {
	if u == PodUserCluster {
		return "/"
	}
	return ""
}

// The annotations of a namespace from which OpenShift assigns.
const (
	annotationUsers  = "openshift.io/sa.scc.uid-range"
	annotationGroups = "openshift.io/sa.scc.supplemental-groups"
	annotationLevel  = "openshift.io/sa.scc.mcs"
)

// maxID is the largest user or group ID that Kubernetes accepts.
const maxID = 1<<31 - 1

// An idRange has its first and its last ID. No range contains 0, which is root.
type idRange struct{ first, last int64 }

func (r idRange) has(id int64) bool { return id > 0 && id >= r.first && id <= r.last }

// Assignable is which users and groups the cluster may assign to the pods of a namespace. The zero value allows none.
type Assignable struct {
	users  []idRange
	groups []idRange
	level  string
}

// AssignableIn returns what the annotations of a namespace allow. Without ranges of groups, the ranges of users apply
// to groups. An invalid range allows nothing.
func AssignableIn(annotations map[string]string) Assignable {
	a := Assignable{users: parseRanges(annotations[annotationUsers]), level: annotations[annotationLevel]}
	a.groups = a.users
	if text, has := annotations[annotationGroups]; has {
		a.groups = parseRanges(text)
	}
	return a
}

// parseRanges reads ranges separated by commas, each as FIRST/COUNT or FIRST-LAST.
func parseRanges(text string) []idRange {
	var out []idRange
	for part := range strings.SplitSeq(text, ",") {
		if r, ok := parseRange(strings.TrimSpace(part)); ok {
			out = append(out, r)
		}
	}
	return out
}

func parseRange(text string) (idRange, bool) {
	first, second, isCount := strings.Cut(text, "/")
	if !isCount {
		first, second, _ = strings.Cut(text, "-")
	}
	from, err := strconv.ParseInt(first, 10, 32)
	to, err2 := strconv.ParseInt(second, 10, 32)
	if err != nil || err2 != nil || from < 0 {
		return idRange{}, false
	}
	if isCount {
		to = min(from+to-1, maxID)
	}
	return idRange{from, to}, from <= to
}

func (a Assignable) user(id *int64) bool  { return id != nil && contains(a.users, *id) }
func (a Assignable) group(id *int64) bool { return id != nil && contains(a.groups, *id) }

func contains(all []idRange, id int64) bool {
	return slices.ContainsFunc(all, func(r idRange) bool { return r.has(id) })
}

// String returns the ranges as FIRST-LAST.
func (a Assignable) String() string {
	return fmt.Sprintf("users %s and groups %s", textOf(a.users), textOf(a.groups))
}

func textOf(all []idRange) string {
	if len(all) == 0 {
		return "none"
	}
	parts := make([]string, len(all))
	for i, r := range all {
		parts[i] = fmt.Sprintf("%d-%d", r.first, r.last)
	}
	return strings.Join(parts, ", ")
}

// isLevel reports whether options are no more than the level of the namespace.
func (a Assignable) isLevel(o *corev1.SELinuxOptions) bool {
	return o != nil && a.level != "" && *o == corev1.SELinuxOptions{Level: a.level}
}

// leavesUser reports whether a pod that was asked for leaves groups, and with them its user, to the
// cluster.
func leavesUser(asked *corev1.Pod) bool { return asked.Spec.SecurityContext.RunAsGroup == nil }

// accept checks what the cluster assigned. It returns the pod without assignable values, for all other comparisons, and
// the values that are not assignable.
func (a Assignable) accept(asked, made *corev1.Pod) (rest *corev1.Pod, found []string) {
	if rest = made.DeepCopy(); rest.Spec.SecurityContext == nil {
		rest.Spec.SecurityContext = &corev1.PodSecurityContext{}
	}
	want, is := asked.Spec.SecurityContext, rest.Spec.SecurityContext
	found = a.differentUsers(asked, made)
	is.RunAsUser = want.RunAsUser
	if !equality.Semantic.DeepEqual(want.FSGroup, is.FSGroup) && (want.FSGroup != nil || !a.group(is.FSGroup)) {
		found = append(found, "the pod has another group of its volumes")
	}
	if slices.ContainsFunc(is.SupplementalGroups, func(id int64) bool { return !a.group(&id) }) {
		found = append(found, "the pod has other supplemental groups")
	}
	if is.SELinuxOptions != nil && !a.isLevel(is.SELinuxOptions) {
		found = append(found, "the pod has other SELinux options")
	}
	is.SELinuxOptions = nil
	for i := range rest.Spec.InitContainers {
		a.clear(rest.Spec.InitContainers[i].SecurityContext)
	}
	return rest, found
}

// clear removes the user of a container, which was compared, and the level of the namespace.
func (a Assignable) clear(c *corev1.SecurityContext) {
	if c == nil {
		return
	}
	c.RunAsUser = nil
	if a.isLevel(c.SELinuxOptions) {
		c.SELinuxOptions = nil
	}
}

// differentUsers returns the containers whose user differs from the runner's. These are all containers if the runner's
// user is neither the requested one nor assignable.
func (a Assignable) differentUsers(asked, made *corev1.Pod) []string {
	user, want := userOf(made, RunnerContainer), asked.Spec.SecurityContext.RunAsUser
	isRight := user != nil && (want != nil && *want == *user || want == nil && a.user(user))
	var found []string
	for _, c := range containersIn(asked) {
		if id := userOf(made, c.Name); !isRight || id == nil || *id != *user {
			found = append(found, fmt.Sprintf("container %s has another user", c.Name))
		}
	}
	return found
}

// containersIn returns all containers of a pod.
func containersIn(pod *corev1.Pod) []corev1.Container {
	return slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
}

// Unassigned returns the first container whose user was left to the cluster and that got none; empty: all have a user,
// or the pod has no sandbox and no server that share files with the runner.
func Unassigned(asked, made *corev1.Pod) string {
	shares := slices.ContainsFunc(asked.Spec.InitContainers, func(c corev1.Container) bool { return IsGuarded(c.Name) })
	if !shares || asked.Spec.SecurityContext.RunAsUser != nil {
		return ""
	}
	for _, c := range containersIn(asked) {
		if userOf(made, c.Name) == nil {
			return c.Name
		}
	}
	return ""
}

// userOf returns the user of a container: its own or that of the pod; nil: that of its image.
func userOf(pod *corev1.Pod, name string) *int64 {
	for _, c := range containersIn(pod) {
		if c.Name == name && c.SecurityContext != nil && c.SecurityContext.RunAsUser != nil {
			return c.SecurityContext.RunAsUser
		}
	}
	if s := pod.Spec.SecurityContext; s != nil {
		return s.RunAsUser
	}
	return nil
}

// A FileOwner is the user who owns the files of a volume, and the group of the volume; 0: none.
type FileOwner struct{ User, Group int64 }

// OwnerOf returns the user that the cluster assigned to a pod, for the files on its volume, or nil.
func OwnerOf(pod *corev1.Pod) *FileOwner {
	user := userOf(pod, RunnerContainer)
	if user == nil {
		return nil
	}
	o := &FileOwner{User: *user}
	if s := pod.Spec.SecurityContext; s != nil && s.FSGroup != nil {
		o.Group = *s.FSGroup
	}
	return o
}

// String returns USER or USER:GROUP.
func (o FileOwner) String() string {
	if o.Group == 0 {
		return strconv.FormatInt(o.User, 10)
	}
	return fmt.Sprintf("%d:%d", o.User, o.Group)
}

// asked returns the users that a pod requests which shares the files. The group of its processes is left to the
// cluster.
func (o FileOwner) asked() userAndGroups {
	out := userAndGroups{user: &o.User}
	if o.Group != 0 {
		out.fsGroup = &o.Group
	}
	return out
}

// FileOwnerOf returns the recorded owner of the files on a claim, or nil.
func FileOwnerOf(claim *corev1.PersistentVolumeClaim) *FileOwner {
	if claim == nil {
		return nil
	}
	first, second, hasGroup := strings.Cut(claim.Annotations[v1alpha1.AnnotationFileOwner], ":")
	var o FileOwner
	var err error
	if o.User, err = strconv.ParseInt(first, 10, 32); err != nil || o.User <= 0 {
		return nil
	}
	if !hasGroup {
		return &o
	}
	if o.Group, err = strconv.ParseInt(second, 10, 32); err != nil || o.Group <= 0 {
		return nil
	}
	return &o
}

// Allows reports whether the cluster may assign an owner in the namespace.
func (a Assignable) Allows(o FileOwner) bool {
	return a.user(&o.User) && (o.Group == 0 || a.group(&o.Group))
}
