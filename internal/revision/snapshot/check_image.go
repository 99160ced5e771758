package snapshot

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// imageName is the grammar of image references that kubelets accept
// (https://pkg.go.dev/github.com/distribution/reference): a domain, a path in lower case, a tag and a
// digest.
var imageName = regexp.MustCompile(`^(?:(?:` + domainName + `|\[[a-fA-F0-9:]+\])(?::[0-9]+)?/)?` +
	pathPart + `(?:/` + pathPart + `)*` +
	`(?::\w[\w.-]{0,127})?` +
	`(?:@[A-Za-z][A-Za-z0-9]*(?:[+._-][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?$`)

const (
	domainLabel = `[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?`
	domainName  = domainLabel + `(?:\.` + domainLabel + `)*`
	pathPart    = `[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*`
)

// bareDigest is a name that registries take for the ID of an image.
var bareDigest = regexp.MustCompile(`^[a-f0-9]{64}$`)

// imageProblem returns why a text is no image reference, and what to write; empty: it is one.
func imageProblem(image string) string {
	if imageName.MatchString(image) && !bareDigest.MatchString(image) {
		return ""
	}
	_, path, hasScheme := strings.Cut(image, "://")
	what := "write it as debian:stable-slim or registry.example/team/tools:1.2"
	switch {
	case hasScheme:
		what = fmt.Sprintf("leave out the scheme, as in %q", path)
	case strings.ContainsAny(image, " \t\r\n"):
		what = "it has a blank: write the tag behind a colon, as in debian:stable-slim"
	case !bareDigest.MatchString(image) && imageName.MatchString(strings.ToLower(image)):
		what = fmt.Sprintf("write the name in lower case, as in %q", strings.ToLower(image))
	}
	return fmt.Sprintf("%q is not an image name: %s", image, what)
}

// checkImages checks the images that an Agent names.
func checkImages(spec v1alpha1.AgentSpec) *NotReadyError {
	field, image := "spec.podTemplate.runnerImage", runnerImage(spec)
	if problem := imageProblem(image); image != "" && problem != "" {
		return &NotReadyError{v1alpha1.ReasonInvalid, field + ": " + problem}
	}
	if spec.Sandbox == nil || spec.Sandbox.Image == "" {
		return nil
	}
	if problem := imageProblem(spec.Sandbox.Image); problem != "" {
		return &NotReadyError{v1alpha1.ReasonInvalid, "spec.sandbox.image: " + problem}
	}
	return nil
}
