package snapshot

import (
	"fmt"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// A bedrockModel has the facts in the ID or ARN of a model at Amazon Bedrock.
type bedrockModel struct {
	region  string // of the ARN; empty: it is an ID
	profile string // the area of an inference profile, for example eu; empty: it is no profile
	id      string // of the model, for example anthropic.claude-haiku-4-5-20251001-v1:0; empty: the ARN has none
}

// profileAreas are the beginnings of the IDs of inference profiles, with the regions that they are called
// from, or with the beginnings of these. A profile of all regions has none. Read on 2026-11-28:
// https://docs.aws.amazon.com/cdk/api/v2/docs/@aws-cdk_aws-bedrock-alpha.CrossRegionInferenceProfileRegion.html,
// and aws-cdk, packages/@aws-cdk/aws-bedrock-alpha/bedrock/inference-profiles/cross-region-inference-profile.ts.
// These have no row for Auckland (ap-southeast-6), which other pages name as a source of those of Australia.
// Regions outside of all areas may call a profile too, as Canada those of the United States: isOfOtherArea
// reports none of them.
var profileAreas = map[string][]string{
	"us":     {"us-"},
	"us-gov": {"us-gov-"},
	"eu":     {"eu-"},
	"apac":   {"ap-", "me-"},
	"jp":     {"ap-northeast-1", "ap-northeast-3"},
	"au":     {"ap-southeast-2", "ap-southeast-4", "ap-southeast-6"},
	"global": nil,
}

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
		if _, isArea := profileAreas[area]; isArea || strings.HasPrefix(rest, "anthropic.") { // there may be new areas
			m.profile, id = area, rest
		}
	}
	m.id = id
	return m
}

// bedrockWarnings warns that a model of Bedrock has another API than the configured one, or that its profile or ARN
// belongs to another region. If the Model has an endpoint, that may be a gateway with other names.
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
	switch from := profileAreas[m.profile]; {
	case m.region != "" && m.region != region:
		out = append(out, fmt.Sprintf("spec.bedrock.region: %s is not the region of the ARN in modelID: write %s", region, m.region))
	case isOfOtherArea(region, from):
		out = append(out, fmt.Sprintf("spec.bedrock.region: %s does not serve the inference profile %s: write %s, or a modelID whose profile is of this region", region, spec.ModelID, regionsIn(from)))
	}
	return out
}

// isOfOtherArea reports whether a region is in an area with its own inference profiles, other than this one.
func isOfOtherArea(region string, area []string) bool {
	isIn := func(beginning string) bool {
		return strings.HasPrefix(region, beginning) && (beginning != "us-" || !strings.HasPrefix(region, "us-gov-"))
	}
	return len(area) > 0 && !slices.ContainsFunc(area, isIn) && slices.ContainsFunc([]string{"us-", "us-gov-", "eu-", "ap-"}, isIn)
}

// regionsIn names the regions of an area.
func regionsIn(area []string) string {
	text := strings.Join(area, " or ")
	if strings.HasSuffix(area[0], "-") {
		return "a region that begins with " + text
	}
	return text
}
