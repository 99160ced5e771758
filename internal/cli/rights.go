package cli

import (
	"context"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

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
