// Package apierr classifies the errors of API requests, describes them in conditions,
// and keeps conflicts out of the log.
package apierr

import (
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Class says what an error of a request means for what was requested.
type Class string

const (
	// None is the class of nil.
	None Class = ""
	// Transient errors say nothing about the request: there was no answer, or the API
	// server could not answer now.
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
	// Refused is any other answer that the same request will get again.
	Refused Class = "Refused"
)

// missingPermission matches what an authorizer answers to a user who lacks a permission, and
// what the admission plugin OwnerReferencesPermissionEnforcement answers, which asks the
// authorizer whether the user may set finalizers on the owner, or delete the object.
var missingPermission = regexp.MustCompile(`cannot [a-z]+ resource|cannot set (blockOwnerDeletion if|an ownerRef on) .*resource you can't (set finalizers on|delete)`)

// Classify returns the class of an error. Where the API server has no reason or code of its
// own for a class, the text decides: of ResourceQuota, of the ServiceAccount plugin, of
// webhooks, which choose their code, and of the authorizer.
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

// requirement matches what ResourceQuota answers if a pod does not set what a quota counts:
// the resources, each with the containers that lack it.
var requirement = regexp.MustCompile(`failed quota: (\S+): must specify (.+)`)

// A Requirement is a resource that a ResourceQuota counts and that a pod does not set.
type Requirement struct {
	// Resource is its name in the quota, such as limits.cpu.
	Resource string
	// Containers lack it. API servers before Kubernetes 1.25 do not name them.
	Containers []string
}

// Requirements returns the ResourceQuota that an error is of and what it requires of the
// pod; none for a quota that has no room.
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

// isFinal reports whether an answer with a code is about the request, so that the same
// request will get it again.
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

// IsConflict reports whether a write failed because the object has changed since it was
// read: the resource version is another, a test of a JSON Patch failed, which the API
// server reports as invalid without naming a field, or a condition that the patch adds is
// there already. A webhook may deny a request with the same code.
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
