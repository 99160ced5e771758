package snapshot

import (
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

func TestModelsOfBedrockThatLikelyDoNotAnswerAreWarnedOf(t *testing.T) {
	const (
		claude = "anthropic.claude-haiku-4-5-20251001-v1:0"
		arn    = "arn:aws:bedrock:eu-central-1:123456789012:"
	)
	for name, tc := range map[string]struct{ modelID, region, endpoint, want string }{
		"a model of the region":                 {claude, "us-east-1", "", ""},
		"a profile of the area":                 {"eu." + claude, "eu-west-3", "", ""},
		"a profile of all regions":              {"global." + claude, "ap-south-1", "", ""},
		"a profile of Japan":                    {"jp." + claude, "ap-northeast-1", "", ""},
		"a profile of the government":           {"us-gov." + claude, "us-gov-west-1", "", ""},
		"an area without profiles of its own":   {"us." + claude, "ca-central-1", "", ""},
		"a profile of Japan in Korea":           {"jp." + claude, "ap-northeast-2", "", "does not serve the inference profile jp." + claude + ": write ap-northeast-1 or ap-northeast-3, or"},
		"a profile of Japan in the States":      {"jp." + claude, "us-east-1", "", "write ap-northeast-1 or"},
		"a profile of Australia in Auckland":    {"au." + claude, "ap-southeast-6", "", ""},
		"a profile of Asia in the Emirates":     {"apac." + claude, "me-central-1", "", ""},
		"a profile of Asia in Europe":           {"apac." + claude, "eu-west-1", "", "write a region that begins with ap- or me-, or"},
		"a profile of an area to come":          {"ca." + claude, "ca-central-1", "", "is not in the list of models"},
		"an application inference profile":      {arn + "application-inference-profile/abc", "eu-central-1", "", ""},
		"the ARN of a profile":                  {arn + "inference-profile/eu." + claude, "eu-central-1", "", ""},
		"a gateway with names of its own":       {"nova", "us-east-1", "https://gateway.example", ""},
		"a model of another provider":           {"amazon.nova-pro-v1:0", "us-east-1", "", "spec.modelID: amazon.nova-pro-v1:0 is not a model of Anthropic, and provider Bedrock calls models of Anthropic only: write"},
		"a profile of another provider":         {"us.meta.llama4-scout-17b-instruct-v1:0", "us-east-1", "", "spec.modelID: us.meta.llama4"},
		"a name of Anthropic's own API":         {"claude-haiku-4-5", "us-east-1", "", "spec.modelID: claude-haiku-4-5 is no ID of a model at Bedrock"},
		"a profile of another area":             {"eu." + claude, "us-east-1", "", "spec.bedrock.region: us-east-1 does not serve the inference profile eu." + claude + ": write a region that begins with eu-"},
		"a profile of the government in public": {"us-gov." + claude, "us-east-1", "", "write a region that begins with us-gov-, or"},
		"a public profile and the government":   {"us." + claude, "us-gov-east-1", "", "spec.bedrock.region: us-gov-east-1 does not serve"},
		"an ARN of another region":              {arn + "inference-profile/eu." + claude, "eu-west-1", "", "spec.bedrock.region: eu-west-1 is not the region of the ARN in modelID: write eu-central-1"},
		"the ARN of a model that is no Claude":  {"arn:aws:bedrock:eu-central-1::foundation-model/amazon.titan-v1", "eu-central-1", "", "is not a model of Anthropic"},
	} {
		spec := v1alpha1.ModelSpec{Provider: v1alpha1.ProviderBedrock, ModelID: tc.modelID, Endpoint: tc.endpoint, Bedrock: &v1alpha1.BedrockModel{Region: tc.region}}
		spec.APIKeySecretRef = &v1alpha1.SecretKeyRef{Name: "a", Key: "b"}
		if got := strings.Join(ModelWarnings(spec), "; "); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
