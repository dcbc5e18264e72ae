// SPDX-License-Identifier: Apache-2.0

package networks

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/plan"
)

func TestConfig(t *testing.T) {
	want, err := os.ReadFile("testdata/config.json")
	require.NoError(t, err)
	assert.Equal(t, string(want), config([]plan.Pool{
		{Resource: "example.com/all", FunctionPool: v1alpha1.FunctionPool{Drivers: []string{"iavf"}}},
		{Resource: "intel.com/sriov_capture", FunctionPool: v1alpha1.FunctionPool{
			Vendors: []string{"8086"}, Devices: []string{"10ca"}, Drivers: []string{"igbvf"}, PFNames: []string{"ens1f0#0,2-7", "ens1f1"},
			PCIAddresses: []string{"0000:03:10.0"},
		}},
	}))
}
