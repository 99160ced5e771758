package openai

import (
	"cmp"
	"errors"
	"net/url"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/model/provider"
)

// chat is the path that the client library appends to a base.
const chat = "/chat/completions"

// response is the path of the Responses API below a base.
const response = "/responses"

// deployments is the path of the deployments of a resource of Azure.
const deployments = "/openai/deployments/"

// address returns the base URL of the API and its query. A Model may name
// the whole URL, or that of a deployment.
func (d *dialect) address(o Options) (base, query string, err error) {
	if o.Endpoint == "" && d.chatPath != chatPathDirect {
		return "", "", errors.New("the endpoint is empty: write your resource's, such as https://name.openai.azure.com")
	}
	base, query, err = httpapi.Parse(cmp.Or(o.Endpoint, d.endpoint))
	if err != nil {
		return "", "", err
	}
	whole := strings.HasSuffix(base, chat) || strings.HasSuffix(base, response) || strings.Contains(base, deployments)
	base = strings.TrimSuffix(strings.TrimSuffix(base, chat), response)
	if d.chatPath == chatPathDirect {
		return base, query, nil
	}
	if !whole {
		base = strings.TrimSuffix(strings.TrimSuffix(base, "/v1"), "/openai")
		base += d.path(o)
	}
	if o.APIVersion != "" && !strings.Contains(query, "api-version=") {
		query = strings.TrimPrefix(query+"&api-version="+url.QueryEscape(o.APIVersion), "&")
	}
	return base, query, nil
}

// path returns the path of Azure's API below the endpoint.
func (d *dialect) path(o Options) string {
	switch {
	case d.chatPath == chatPathVersionOne:
		return "/openai/v1"
	case o.API == provider.APIResponses: // the body names the deployment
		return "/openai"
	}
	return deployments + url.PathEscape(d.modelName(o))
}

// modelName returns the name by which the endpoint knows the model.
func (d *dialect) modelName(o Options) string {
	if d.chatPath == chatPathDirect {
		return o.Model
	}
	return cmp.Or(o.Deployment, o.Model)
}
