package openai

import (
	"cmp"
	"errors"
	"net/url"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/model/httpapi"
)

// chat is what the client library appends to a base.
const chat = "/chat/completions"

// deployments is where Azure has the deployments of a resource.
const deployments = "/openai/deployments/"

// address is the base of the chat's address and its query. A Model may name the
// whole address too, or that of a deployment.
func (d *dialect) address(o Options) (base, query string, err error) {
	if o.Endpoint == "" && d.place != placeHere {
		return "", "", errors.New("the endpoint is empty: write your resource's, such as https://name.openai.azure.com")
	}
	base, query, err = httpapi.Parse(cmp.Or(o.Endpoint, d.endpoint))
	if err != nil {
		return "", "", err
	}
	whole := strings.HasSuffix(base, chat) || strings.Contains(base, deployments)
	base = strings.TrimSuffix(base, chat)
	if d.place == placeHere {
		return base, query, nil
	}
	if !whole {
		base = strings.TrimSuffix(strings.TrimSuffix(base, "/v1"), "/openai")
		base += map[place]string{
			placeVersionOne: "/openai/v1",
			placeDeployment: deployments + url.PathEscape(d.deployed(o)),
		}[d.place]
	}
	if o.APIVersion != "" && !strings.Contains(query, "api-version=") {
		query = strings.TrimPrefix(query+"&api-version="+url.QueryEscape(o.APIVersion), "&")
	}
	return base, query, nil
}

// deployed is the name under which the endpoint knows the model.
func (d *dialect) deployed(o Options) string {
	if d.place == placeHere {
		return o.Model
	}
	return cmp.Or(o.Deployment, o.Model)
}
