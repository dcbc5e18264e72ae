// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// claim is the owner of a name. Rings and Clusters share one name space, because pods request a ring's own queues by its name.
type claim struct {
	kind     string
	created  time.Time
	rolled   bool
	deleting bool
}

const (
	kindRing    = "CaptureRing"
	kindCluster = "Cluster"
)

// claimNames assigns each name to the ring or Cluster that nodes already have; else to the older one, and to the ring if they
// are equally old. An object that is being deleted keeps its name until no node has it any more.
func claimNames(rings []*v1alpha1.CaptureRing, clusters []*v1alpha1.Cluster) map[string]claim {
	names := map[string]claim{}
	for _, r := range rings {
		names[r.Name] = claimOf(kindRing, r)
	}
	for _, c := range clusters {
		mine := claimOf(kindCluster, c)
		if holder, taken := names[c.Name]; !taken || mine.before(holder) {
			names[c.Name] = mine
		}
	}
	return names
}

func claimOf(kind string, object metav1.Object) claim {
	return claim{
		kind: kind, created: object.GetCreationTimestamp().Time,
		rolled:   slices.Contains(object.GetFinalizers(), v1alpha1.FinalizerNodes),
		deleting: object.GetDeletionTimestamp() != nil,
	}
}

func (c claim) before(other claim) bool {
	if c.rolled != other.rolled {
		return c.rolled
	}
	return c.created.Before(other.created)
}

// nameIsFree refuses an object if its name belongs to another one.
func (d *draft) nameIsFree(kind, name string) *Verdict {
	holder := d.names[name]
	switch {
	case holder.kind == kind:
		return nil
	case holder.deleting:
		return refuse(v1alpha1.ReasonNameConflict, "metadata.name: %s %q has this name and is being deleted; this %s follows when the nodes are rid of it",
			holder.kind, name, kind)
	}
	return refuse(v1alpha1.ReasonNameConflict, "metadata.name: %s %q has this name already, and pods request either as %s%s: give this %s another name",
		holder.kind, name, v1alpha1.ResourcePrefix, name, kind)
}

func refuse(reason, format string, args ...any) *Verdict {
	return &Verdict{Reason: reason, Message: fmt.Sprintf(format, args...)}
}
