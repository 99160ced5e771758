// Package apierr classifies the errors of API requests, describes them in conditions,
// and keeps conflicts out of the log. It has the requests that must not affect a changed object.
package apierr

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// A Class is the meaning of a request's error.
type Class string

const (
	// None is the class of nil.
	None Class = ""
	// Transient errors are not about the request: there was no answer, or the API server could not answer now.
	Transient Class = "Transient"
	// Conflict means that the object has changed since it was read.
	Conflict Class = "Conflict"
	// NotFound means that the namespace, or the object to change, does not exist.
	NotFound Class = "NotFound"
	// Terminating means that the namespace is being deleted.
	Terminating Class = "Terminating"
	// Quota means that a ResourceQuota has no room.
	Quota Class = "Quota"
	// ServiceAccount means that the ServiceAccount of a pod does not exist yet.
	ServiceAccount Class = "ServiceAccount"
	// Forbidden means that the operator lacks the permission.
	Forbidden Class = "Forbidden"
	// Admission means that a policy, a webhook or an admission plugin denied the request.
	Admission Class = "Admission"
	// Invalid means that a schema or a rule of the kind refused the object.
	Invalid Class = "Invalid"
	// Refused is any other error that the same request will get again.
	Refused Class = "Refused"
)

// missingPermission matches the errors of authorizers about a missing permission, and those of the admission plugin
// OwnerReferencesPermissionEnforcement, which asks the authorizer whether the user may set finalizers on the owner, or
// delete the object.
var missingPermission = regexp.MustCompile(`cannot [a-z]+ resource|cannot set (blockOwnerDeletion if|an ownerRef on) .*resource you can't (set finalizers on|delete)`)

// Classify returns the class of an error. If the API server has no reason or code of its own for a class, the text
// decides: for ResourceQuota, the ServiceAccount plugin, webhooks, which choose their code, and the authorizer.
func Classify(err error) Class {
	status, isStatus := errors.AsType[*apierrors.StatusError](err)
	switch {
	case err == nil:
		return None
	case !isStatus:
		return Transient
	case IsConflict(err):
		return Conflict
	case !isFinal(status.ErrStatus.Code):
		return Transient
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return Terminating
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "exceeded quota"), strings.Contains(text, "failed quota"):
		return Quota
	case strings.Contains(text, "error looking up service account"):
		return ServiceAccount
	case isDenied(text):
		return Admission
	case apierrors.IsForbidden(err) && missingPermission.MatchString(text):
		return Forbidden
	case apierrors.IsForbidden(err):
		return Admission
	case apierrors.IsInvalid(err):
		return Invalid
	case apierrors.IsNotFound(err):
		return NotFound
	}
	return Refused
}

// requirement matches the error of ResourceQuota about a pod that does not set what a quota counts: the resources, each
// with the containers that lack it.
var requirement = regexp.MustCompile(`failed quota: (\S+): must specify (.+)`)

// A Requirement is a resource that a ResourceQuota counts and that a pod does not set.
type Requirement struct {
	// Resource is its name in the quota, such as limits.cpu.
	Resource string
	// Containers lack it. API servers before Kubernetes 1.25 do not name them.
	Containers []string
}

// Requirements returns the ResourceQuota that an error is about and what it requires of the pod; none for an exhausted
// quota.
func Requirements(err error) (quota string, all []Requirement) {
	found := requirement.FindStringSubmatch(Text(err))
	if found == nil {
		return "", nil
	}
	for part := range strings.SplitSeq(found[2], ";") {
		names, containers, hasContainers := strings.Cut(strings.TrimSpace(part), " for: ")
		for name := range strings.SplitSeq(names, ",") {
			r := Requirement{Resource: name}
			if hasContainers {
				r.Containers = strings.Split(containers, ",")
			}
			all = append(all, r)
		}
	}
	return found[1], all
}

// isDenied reports whether the text of an error is of a webhook or an admission policy.
func isDenied(text string) bool {
	return strings.Contains(text, "denied the request") || strings.Contains(text, "denied request")
}

// isFinal reports whether an error with a code is about the request, so that the same request will get it again.
func isFinal(code int32) bool {
	switch code {
	case http.StatusUnauthorized, http.StatusConflict, http.StatusTooManyRequests, http.StatusRequestTimeout:
		return false
	default:
		return code >= http.StatusBadRequest && code < http.StatusInternalServerError
	}
}

// IsRefusal reports whether the API server refused the request, rather than that it could
// not answer now or that the object has changed.
func IsRefusal(err error) bool {
	switch Classify(err) {
	case None, Transient, Conflict:
		return false
	default:
		return true
	}
}

// Found reports whether a request to get an object found it. That it does not exist is not an
// error.
func Found(err error) (bool, error) {
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// IsConflict reports whether a write failed because the object has changed since it was read: the resource version is
// another, a test of a JSON Patch failed, which the API server reports as invalid without naming a field, or a
// condition that the patch adds exists already. A webhook may deny a request with the same code.
func IsConflict(err error) bool {
	if apierrors.IsConflict(err) {
		return true
	}
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || isDenied(err.Error()) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || !slices.ContainsFunc(details.Causes, func(c metav1.StatusCause) bool {
		return c.Type != metav1.CauseTypeFieldValueDuplicate || !strings.HasPrefix(c.Field, "status.conditions[")
	})
}

// conflictDelay is how long the cache has to receive changes after a conflict.
const conflictDelay = 100 * time.Millisecond

// stopGrace is how long a reconciliation may continue after the operator is stopped: less than
// the manager waits for its controllers (30 s).
const stopGrace = 10 * time.Second

// RequeueConflicts wraps a reconciler so that a conflict is requeued without an error in the
// log. A reconciliation that runs when the operator is stopped continues, so that the objects
// it created are recorded.
func RequeueConflicts(inner reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
		step, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		defer context.AfterFunc(ctx, func() { time.AfterFunc(stopGrace, cancel) })()
		result, err := inner.Reconcile(step, req)
		switch {
		case IsConflict(err):
			return ctrl.Result{RequeueAfter: conflictDelay}, nil
		case ctx.Err() != nil && errors.Is(err, context.Canceled):
			return ctrl.Result{}, nil // another operator reconciles it
		}
		return result, err
	})
}

var errChanged = errors.New("it has changed since it was read")

// Changed returns the conflict of a request about an object of Deckhand that has changed since
// it was read. Its kind is, for example, Run.
func Changed(kind, name string) error {
	resource := v1alpha1.GroupVersion.WithResource(strings.ToLower(kind) + "s")
	return apierrors.NewConflict(resource.GroupResource(), name, errChanged)
}

// CheckUnchanged returns a conflict if an object of Deckhand has changed since it was read: a
// cache may have an old copy. live reads from the API server itself.
func CheckUnchanged(ctx context.Context, live client.Reader, kind string, read client.Object) error {
	var now metav1.PartialObjectMetadata
	now.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	if err := live.Get(ctx, client.ObjectKeyFromObject(read), &now); err != nil {
		return fmt.Errorf("getting %s %s: %w", kind, read.GetName(), err)
	}
	if now.UID != read.GetUID() || now.ResourceVersion != read.GetResourceVersion() {
		return Changed(kind, read.GetName())
	}
	return nil
}

// Delete deletes exactly this object, and no other that has its name by now. It succeeds if the object no longer exists.
func Delete(ctx context.Context, c client.Writer, o client.Object, kind string, options ...client.DeleteOption) error {
	uid := o.GetUID()
	return deleteIf(ctx, c, o, kind, append(options, client.Preconditions{UID: &uid})...)
}

// DeleteUnchanged deletes an object if it is still as it was read. Otherwise the error is a conflict.
func DeleteUnchanged(ctx context.Context, c client.Writer, o client.Object, kind string) error {
	uid, version := o.GetUID(), o.GetResourceVersion()
	return deleteIf(ctx, c, o, kind, client.Preconditions{UID: &uid, ResourceVersion: &version})
}

func deleteIf(ctx context.Context, c client.Writer, o client.Object, kind string, options ...client.DeleteOption) error {
	err := c.Delete(ctx, o, options...)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %s %s: %w", kind, o.GetName(), err)
	}
	return nil
}
