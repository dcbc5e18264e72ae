// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// claim is who has a name. Rings and Clusters share one name space, for a ring's own queues are requested by its name.
type claim struct {
	kind     string
	created  time.Time
	deleting bool
}

const (
	kindRing    = "CaptureRing"
	kindCluster = "Cluster"
)

// claimNames gives each name to the older of the two that want it, to the ring when they are equally old. An object
// that is being deleted has its name until the nodes are rid of it.
func claimNames(rings []*v1alpha1.CaptureRing, clusters []*v1alpha1.Cluster) map[string]claim {
	names := map[string]claim{}
	for _, r := range rings {
		names[r.Name] = claim{kindRing, r.CreationTimestamp.Time, r.DeletionTimestamp != nil}
	}
	for _, c := range clusters {
		if holder, taken := names[c.Name]; taken && !c.CreationTimestamp.Time.Before(holder.created) {
			continue
		}
		names[c.Name] = claim{kindCluster, c.CreationTimestamp.Time, c.DeletionTimestamp != nil}
	}
	return names
}

// nameIsFree refuses who does not have its name.
func (d *draft) nameIsFree(kind, name string) *Verdict {
	holder := d.names[name]
	switch {
	case holder.kind == kind:
		return nil
	case holder.deleting:
		return refuse(v1alpha1.ReasonNameConflict, "metadata.name: %s %q has this name and is being deleted; this %s follows when the nodes are rid of it",
			holder.kind, name, kind)
	}
	return refuse(v1alpha1.ReasonNameConflict, "metadata.name: the older %s %q has this name, and pods request either as %s%s: give this %s another name",
		holder.kind, name, v1alpha1.ResourcePrefix, name, kind)
}

func refuse(reason, format string, args ...any) *Verdict {
	return &Verdict{Reason: reason, Message: fmt.Sprintf(format, args...)}
}
