// SPDX-License-Identifier: Apache-2.0

package networks

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/ringcap/ringcap/operator/plan"
)

var span = plan.Network{Namespace: "sensors", Ring: "span", UID: "uid-span", Resource: "intel.com/sriov_capture"}

func TestDefinition(t *testing.T) {
	want, err := os.ReadFile("testdata/definition.yaml")
	require.NoError(t, err)
	got, err := yaml.Marshal(definition(span))
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got))
}

// What others added stays, what they changed comes back, and what is right is not written again.
func TestBring(t *testing.T) {
	have := definition(span)
	assert.False(t, update(have, span))
	have.SetAnnotations(map[string]string{"mine": "too", poolAnnotation: "other.com/pool"})
	have.Object["spec"] = map[string]any{"config": "{}"}
	assert.True(t, update(have, span))
	assert.Equal(t, map[string]string{"mine": "too", poolAnnotation: span.Resource}, have.GetAnnotations())
	config, _, _ := unstructured.NestedString(have.Object, "spec", "config")
	assert.JSONEq(t, `{"cniVersion": "1.0.0", "name": "span", "type": "host-device"}`, config)
	assert.False(t, update(have, span))
}

func TestSurplus(t *testing.T) {
	refused := plan.Plan{Rings: map[string]plan.Verdict{"span": {Reason: "InvalidFilter"}}}
	accepted := plan.Plan{Rings: map[string]plan.Verdict{"span": {Reason: "Accepted"}}}
	asked := accepted
	asked.Networks = []plan.Network{span}
	assert.True(t, surplus(definition(span), plan.Plan{}), "its ring is gone")
	assert.True(t, surplus(definition(span), accepted), "its ring does not ask for it any more")
	assert.False(t, surplus(definition(span), asked))
	assert.False(t, surplus(definition(span), refused), "a ring that is refused keeps what it had")
	foreign := definition(span)
	foreign.SetOwnerReferences(nil)
	assert.False(t, surplus(foreign, plan.Plan{}))
}
