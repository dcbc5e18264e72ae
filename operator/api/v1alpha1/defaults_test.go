// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// Default sets what the API server sets from the CRDs.
func TestDefaultsAreTheCRDs(t *testing.T) {
	ring, cluster := CaptureRingSpec{}, ClusterSpec{}
	ring.Default()
	cluster.Default()
	for file, spec := range map[string]any{
		"../../../config/crd/ringcap.io_capturerings.yaml": ring,
		"../../../config/crd/ringcap.io_clusters.yaml":     cluster,
	} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var crd apiextensions.CustomResourceDefinition
		require.NoError(t, yaml.Unmarshal(text, &crd))
		encoded, err := json.Marshal(spec)
		require.NoError(t, err)
		var fields map[string]any
		require.NoError(t, json.Unmarshal(encoded, &fields))
		assertDefaults(t, "spec", crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"], fields)
	}
}

// assertDefaults compares a schema's defaults with an object's fields. Zero numbers that are left out when encoded are 0.
func assertDefaults(t *testing.T, path string, schema apiextensions.JSONSchemaProps, fields map[string]any) {
	t.Helper()
	for name, property := range schema.Properties {
		if inner, ok := fields[name].(map[string]any); ok && len(property.Properties) > 0 {
			assertDefaults(t, path+"."+name, property, inner)
			continue
		}
		if property.Default == nil {
			continue
		}
		var want any
		require.NoError(t, json.Unmarshal(property.Default.Raw, &want))
		assert.Equal(t, want, fields[name], "%s.%s", path, name)
	}
}
