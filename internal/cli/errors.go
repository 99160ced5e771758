package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// explain returns the message of an error, with what to do next.
func explain(err error) string {
	switch {
	case clientcmd.IsEmptyConfig(err):
		return noCluster(os.Getenv(clientcmd.RecommendedConfigPathEnvVar))
	case apierrors.IsForbidden(err):
		return err.Error() + forbiddenHint(err)
	case isNotInstalled(err):
		return "this cluster does not have the kinds of Deckhand: install the chart charts/deckhand, or choose another cluster with --context"
	case apierrors.IsUnauthorized(err):
		return err.Error() + ". Log in again, or choose another user with --context"
	case isUnreachable(err):
		return "cannot reach the API server: " + err.Error() + ". Check with: kubectl cluster-info"
	}
	return unchecked.ReplaceAllString(err.Error(), "")
}

// noCluster returns what to do if the files in KUBECONFIG have no cluster.
func noCluster(names string) string {
	var missing []string
	for _, name := range filepath.SplitList(names) {
		if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) { //nolint:gosec // G703: users name files of their own
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return "no cluster is configured: set KUBECONFIG or --kubeconfig to the file that kubectl uses"
	}
	return fmt.Sprintf("no cluster is configured: KUBECONFIG names %s, which does not exist: set it to the file that kubectl uses", strings.Join(missing, " and "))
}

// unchecked matches a text that API servers add to the errors of a schema: it names no field and no remedy.
var unchecked = regexp.MustCompile(`(, )?<nil>: Invalid value: "?null"?: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation`)

// configError returns what to do if the kubeconfig cannot be used.
func configError(err error) error {
	if err == nil || clientcmd.IsEmptyConfig(err) {
		return err
	}
	return fmt.Errorf("reading the kubeconfig: %w. See what it has with: kubectl config get-contexts", err)
}

// isUnreachable reports whether a request did not reach the API server.
func isUnreachable(err error) bool {
	var request *url.Error
	var network net.Error
	return errors.As(err, &request) && errors.As(err, &network)
}

// isServerError reports whether a server failed or is overloaded. This includes a kubelet that the API server cannot
// reach, an error without a reason.
func isServerError(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests
}

// forbiddenHint names the ClusterRole with the missing permission: one of the chart, or view or edit of Kubernetes. The
// message of the API server has the verb and the resource.
func forbiddenHint(err error) string {
	text := err.Error()
	if !strings.Contains(text, " cannot ") { // an admission policy, which says what to do itself
		return ""
	}
	if strings.Contains(text, `"selfsubject`) { // everybody has this right unless it was removed
		return ". Ask an administrator to bind the ClusterRole system:basic-user to you"
	}
	where := "in this namespace"
	if strings.Contains(text, " at the cluster scope") {
		where = "in all namespaces, or leave out -A"
	}
	return ". Ask an administrator to bind the ClusterRole " + roleFor(text) + " to you " + where
}

// roleFor returns the ClusterRole with the permission that the API server reports as missing.
func roleFor(refused string) string {
	changes := !strings.Contains(refused, " cannot get ") && !strings.Contains(refused, " cannot list ")
	switch {
	case !strings.Contains(refused, `"deckhand.dev"`) && changes:
		return "edit"
	case !strings.Contains(refused, `"deckhand.dev"`):
		return "view"
	case changes && strings.Contains(refused, `"decisions"`):
		return "deckhand-approver"
	case changes:
		return "deckhand-user"
	}
	return "deckhand-viewer"
}

// isNotInstalled reports whether the API server does not know the kind, and not only the object.
func isNotInstalled(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == ""
}

// missingRights returns which of some rights, such as "get pods/log", the user does not have in a
// namespace.
func missingRights(ctx context.Context, c client.Client, namespace string, rights ...string) ([]string, error) {
	var missing []string
	for _, right := range rights {
		verb, of, _ := strings.Cut(right, " ")
		name, subresource, _ := strings.Cut(of, "/")
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Resource: name, Subresource: subresource},
		}}
		if err := c.Create(ctx, review); err != nil {
			return nil, err
		}
		if !review.Status.Allowed {
			missing = append(missing, right)
		}
	}
	return missing, nil
}
