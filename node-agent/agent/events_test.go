// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"

	"github.com/stretchr/testify/assert"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

func TestRelatedRing(t *testing.T) {
	object := nodeCapture(func(nc *v1.NodeCapture) { nc.Spec.Rings[0].UID = "u" })
	ring := related(object, "mirror").(*v1.CaptureRing)
	assert.Equal(t, "mirror u", ring.Name+" "+string(ring.UID))
	assert.Nil(t, related(object, ""))
	assert.Empty(t, related(object, "gone").(*v1.CaptureRing).UID)
}
