package cli

import (
	"errors"
	"net"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"
)

// explain returns what an error says, and what to do next.
func explain(err error) string {
	var unreachable *url.Error
	var network net.Error
	switch {
	case clientcmd.IsEmptyConfig(err):
		return "no cluster is configured: set KUBECONFIG or --kubeconfig to the file that kubectl uses"
	case apierrors.IsForbidden(err):
		return err.Error() + forbiddenHint(err)
	case isNotInstalled(err):
		return "this cluster does not have the kinds of Deckhand: install the chart charts/deckhand, or choose another cluster with --context"
	case apierrors.IsUnauthorized(err):
		return err.Error() + ". Log in again, or choose another user with --context"
	case errors.As(err, &unreachable) && errors.As(err, &network):
		return "cannot reach the API server: " + err.Error() + ". Check with: kubectl cluster-info"
	}
	return err.Error()
}

// forbiddenHint names the ClusterRole of the chart that allows what was refused. The message
// of the API server has the verb and the resource.
func forbiddenHint(err error) string {
	text := err.Error()
	role := "deckhand-viewer"
	switch {
	case !strings.Contains(text, " cannot "): // an admission policy, which says what to do itself
		return ""
	case strings.Contains(text, `cannot create resource "decisions"`):
		role = "deckhand-approver"
	case strings.Contains(text, `cannot create resource "runs"`), strings.Contains(text, `cannot patch resource "runs"`):
		role = "deckhand-user"
	case !strings.Contains(text, `"deckhand.dev"`):
		role = "view"
	}
	return ". Ask an administrator to bind the ClusterRole " + role + " to you in this namespace"
}

// isNotInstalled is whether the API server does not know the kind, and not only the object.
func isNotInstalled(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == ""
}
