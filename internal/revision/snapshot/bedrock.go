package snapshot

import (
	"fmt"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// A bedrockModel is what the ID or ARN of a model says at Amazon Bedrock.
type bedrockModel struct {
	region  string // of the ARN; empty: it is an ID
	profile string // where an inference profile is served, for example eu; empty: it is no profile
	id      string // of the model, for example anthropic.claude-haiku-4-5-20251001-v1:0; empty: the ARN has none
}

// profileAreas are the beginnings of the IDs of inference profiles, with those of the regions that they
// are called from. An area of which other regions are known to call a profile is not among the values.
// https://docs.aws.amazon.com/bedrock/latest/userguide/inference-profiles-support.html
var profileAreas = map[string]string{"us": "us", "us-gov": "us-gov", "eu": "eu", "apac": "ap", "jp": "ap", "au": "ap", "global": ""}

func readBedrockModel(modelID string) bedrockModel {
	var m bedrockModel
	id := modelID
	if arn := strings.SplitN(modelID, ":", 6); len(arn) == 6 && arn[0] == "arn" {
		m.region = arn[3]
		resource, name, _ := strings.Cut(arn[5], "/")
		if resource != "inference-profile" && resource != "foundation-model" {
			return m
		}
		id = name
	}
	if area, rest, found := strings.Cut(id, "."); found {
		if _, isArea := profileAreas[area]; isArea {
			m.profile, id = area, rest
		}
	}
	m.id = id
	return m
}

// bedrockWarnings returns that a model of Bedrock has another API than that which is spoken, and that its
// profile or ARN is of another region. An endpoint of the Model may be a gateway with names of its own.
func bedrockWarnings(spec v1alpha1.ModelSpec) []string {
	if spec.Provider != v1alpha1.ProviderBedrock || spec.Bedrock == nil || spec.Endpoint != "" {
		return nil
	}
	var out []string
	m, region := readBedrockModel(spec.ModelID), spec.Bedrock.Region
	const example = "for example eu.anthropic.claude-haiku-4-5-20251001-v1:0"
	switch vendor, _, hasVendor := strings.Cut(m.id, "."); {
	case m.id == "":
	case !hasVendor:
		out = append(out, fmt.Sprintf("spec.modelID: %s is no ID of a model at Bedrock: write the ID of an inference profile of Claude, %s", spec.ModelID, example))
	case vendor != "anthropic":
		out = append(out, fmt.Sprintf("spec.modelID: %s is not a model of Anthropic, and provider Bedrock calls models of Anthropic only: write the ID of an inference profile of Claude, %s", spec.ModelID, example))
	}
	area := profileAreas[m.profile]
	switch {
	case m.region != "" && m.region != region:
		out = append(out, fmt.Sprintf("spec.bedrock.region: %s is not the region of the ARN in modelID: write %s", region, m.region))
	case area != "" && isOfOtherArea(region, area):
		out = append(out, fmt.Sprintf("spec.bedrock.region: %s does not serve the inference profile %s: write a region that begins with %s-, or a modelID whose profile is of this region", region, spec.ModelID, area))
	}
	return out
}

// isOfOtherArea reports whether a region is in an area that has inference profiles of its own, and not in
// this one.
func isOfOtherArea(region, area string) bool {
	areaOf := region[:strings.Index(region+"-", "-")]
	if strings.HasPrefix(region, "us-gov-") {
		areaOf = "us-gov"
	}
	return areaOf != area && slices.Contains([]string{"us", "us-gov", "eu", "ap"}, areaOf)
}
