// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// triedAgain tells when a change is tried again. While an engine tries what it cannot do, what it did before is gone.
const triedAgain = "; the change is tried again when it is edited, or when the agent restarts"

const asBefore = "; until then it stays as it was before the change"

// changes are the differences between the desired specs and the last accepted ones. A refused change is withheld: the
// object is planned by its whole last accepted spec.
// \ The reason does not tell whether the change or the node is at fault. If it is the node, the accepted spec is
// refused too, and nothing is planned.
type changes struct {
	asked, good v1.NodeCaptureSpec
	// rings and clusters hold the reasons of withheld changes, by name.
	rings, clusters map[string]*problem
	// counts holds numbers of queues, by ring, that stay although the ring's interface now has more RX queues. grown
	// has the reasons.
	counts map[string]int
	grown  map[string]*problem
	// drivers holds the drivers that withheld rings ask for. A failed replacement is waited for, and tried again at
	// its own pace.
	drivers map[string]DesiredDriver
}

func newChanges(asked, good v1.NodeCaptureSpec) *changes {
	return &changes{
		asked: asked, good: good, rings: map[string]*problem{}, clusters: map[string]*problem{},
		counts: map[string]int{}, grown: map[string]*problem{}, drivers: map[string]DesiredDriver{},
	}
}

// spec returns the desired spec, with the accepted specs in place of withheld changes.
func (c *changes) spec() v1.NodeCaptureSpec {
	spec := v1.NodeCaptureSpec{Rings: slices.Clone(c.asked.Rings), Clusters: slices.Clone(c.asked.Clusters)}
	for i, ring := range spec.Rings {
		if good, ok := goodRing(c.good, ring); ok && c.rings[ring.Name] != nil {
			spec.Rings[i] = good
		}
	}
	for i, cluster := range spec.Clusters {
		if good, ok := goodCluster(c.good, cluster); ok && c.clusters[cluster.Name] != nil {
			spec.Clusters[i] = good
		}
	}
	return spec
}

// withholdRefused withholds changes that a plan refuses, and reports whether there were any. Rings go first, because
// a Cluster may be refused only because of its ring.
func (c *changes) withholdRefused(result Result) (more bool) {
	for _, ring := range c.asked.Rings {
		if refused := refusalOfRing(result, ring); refused != nil && c.ringIsChanged(ring) {
			c.withholdRing(ring.Name, refused, result)
			more = true
		}
	}
	for _, cluster := range c.asked.Clusters {
		refused := refusal(result.Clusters[cluster.Name])
		if !more && refused != nil && c.clusterIsChanged(cluster) {
			c.clusters[cluster.Name] = refused
			return true
		}
	}
	return more
}

// keepCount keeps a ring's present number of queues if one queue for each RX queue of its interface would be more,
// and is refused. In this case the spec has not changed, so there is nothing to withhold.
func (c *changes) keepCount(result Result, facts Facts) bool {
	for _, ring := range c.spec().Rings {
		own, now := result.Clusters[ring.Name], facts.QueueCounts[ring.Name]
		perRxQueue := ring.Spec.Queues != nil && ring.Spec.Queues.Type == intstr.String
		if refused := refusal(own); perRxQueue && refused != nil && 0 < now && now < own.queues && c.grown[ring.Name] == nil {
			c.counts[ring.Name], c.grown[ring.Name] = now, refused
			return true
		}
	}
	return false
}

// withholdHarmful withholds a change that is valid by itself but harms another object. That object has no change, or
// its change is withheld. For example, packets of a ring become too long for a Cluster's memory, or a queue is
// removed that a ring's rule names.
func (c *changes) withholdHarmful(result Result, facts Facts) bool {
	for _, cluster := range c.asked.Clusters {
		refused := refusal(result.Clusters[cluster.Name])
		good, ok := goodCluster(c.good, cluster)
		if refused == nil || !ok || c.clusterIsChanged(cluster) {
			continue
		}
		without := c.clone()
		for _, ring := range c.asked.Rings {
			if slices.Contains(good.Spec.Rings, ring.Name) && c.ringIsChanged(ring) {
				without.withholdRing(ring.Name, harm("Cluster", cluster.Name, refused), result)
			}
		}
		if c.take(without, facts, func(r Result) bool { return r.Clusters[cluster.Name].Planned }) {
			return true
		}
	}
	for _, ring := range c.asked.Rings {
		refused := refusalOfRing(result, ring)
		good, ok := goodRing(c.good, ring)
		if refused == nil || !ok || c.ringIsChanged(ring) {
			continue
		}
		without := c.clone()
		for _, cluster := range c.asked.Clusters {
			if sendsTo(good, cluster.Name) && c.clusterIsChanged(cluster) {
				without.clusters[cluster.Name] = harm("ring", ring.Name, refused)
			}
		}
		if c.take(without, facts, func(r Result) bool { return r.Rings[ring.Name].Planned }) {
			return true
		}
	}
	return false
}

// take withholds what another set of changes withholds, if that is more and helps.
func (c *changes) take(other *changes, facts Facts, helps func(Result) bool) bool {
	more := len(other.rings)+len(other.clusters) > len(c.rings)+len(c.clusters)
	if !more || !helps(decide(other.spec(), facts)) {
		return false
	}
	*c = *other
	return true
}

func (c *changes) clone() *changes {
	other := *c
	other.rings, other.clusters, other.drivers = maps.Clone(c.rings), maps.Clone(c.clusters), maps.Clone(c.drivers)
	return &other
}

func (c *changes) withholdRing(name string, why *problem, result Result) {
	c.rings[name] = why
	for iface, driver := range result.Drivers {
		if driver.Ring == name {
			c.drivers[iface] = driver
		}
	}
}

// ringIsChanged reports whether a ring has a change that is not withheld.
func (c *changes) ringIsChanged(ring v1.NodeRing) bool {
	good, ok := goodRing(c.good, ring)
	return ok && c.rings[ring.Name] == nil && !equality.Semantic.DeepEqual(good, ring)
}

func (c *changes) clusterIsChanged(cluster v1.NodeCluster) bool {
	good, ok := goodCluster(c.good, cluster)
	return ok && c.clusters[cluster.Name] == nil && !equality.Semantic.DeepEqual(good, cluster)
}

// note writes into the verdicts what is withheld, and why.
func (c *changes) note(result Result) {
	for name, why := range c.rings {
		result.Rings[name] = result.Rings[name].asBefore(why)
	}
	for _, ring := range c.good.Rings {
		if why := c.rings[ring.Name]; why != nil && ring.Spec.Queues != nil {
			result.Clusters[ring.Name] = result.Clusters[ring.Name].asBefore(why)
		}
	}
	for name, why := range c.clusters {
		result.Clusters[name] = result.Clusters[name].asBefore(why)
	}
	for name, why := range c.grown {
		if verdict := result.Clusters[name]; verdict.Ready() {
			verdict.Reason, verdict.Message = why.reason, fmt.Sprintf("%s; until then there are %d, as before", why.message, c.counts[name])
			result.Clusters[name] = verdict
		}
	}
	for iface, driver := range c.drivers {
		if _, taken := result.Drivers[iface]; !taken {
			result.Drivers[iface] = driver
		}
	}
}

func (v Verdict) asBefore(why *problem) Verdict {
	v.AsBefore, v.Reason, v.Message = true, why.reason, why.message
	if v.Planned {
		v.Message += asBefore
	}
	return v
}

// refusalOfRing returns why a ring, or its own queues, are not in a plan.
func refusalOfRing(result Result, ring v1.NodeRing) *problem {
	verdict := result.Rings[ring.Name]
	if ring.Spec.Queues == nil || !verdict.Planned {
		return refusal(verdict)
	}
	return refusal(result.Clusters[ring.Name])
}

// refusal returns why an object is not in a plan. An object that waits for its driver is not refused. Neither is one
// that does not concern this node.
func refusal(v Verdict) *problem {
	if v.Planned || v.Absent() || v.Reason == v1.ReasonPending {
		return nil
	}
	return &problem{reason: v.Reason, message: v.Message}
}

// SpecKey tells an object from others, and from itself with another spec.
func SpecKey[T v1.NodeRing | v1.NodeCluster](object T) string {
	// A spec came as JSON, so it can be encoded as JSON.
	text, _ := json.Marshal(object)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// unsupported returns what an engine reported for an object's spec; nil for nothing.
func (f Facts) unsupported(key func() string) *problem {
	if len(f.Unsupported) == 0 {
		return nil // the key of many rules takes time to compute
	}
	if refusal, refused := f.Unsupported[key()]; refused {
		return &problem{refusal.Reason, refusal.Message + triedAgain}
	}
	return nil
}

// Changed returns the objects with a new spec in the plan: not the last accepted one, and not withheld. The result
// has their SpecKey, by name.
func (r Result) Changed(spec, before v1.NodeCaptureSpec) map[string]string {
	changed := map[string]string{}
	c := newChanges(spec, before)
	for _, ring := range spec.Rings {
		if r.Rings[ring.Name].accepted() && c.ringIsChanged(ring) {
			changed[ring.Name] = SpecKey(ring)
		}
	}
	for _, cluster := range spec.Clusters {
		if r.Clusters[cluster.Name].accepted() && c.clusterIsChanged(cluster) {
			changed[cluster.Name] = SpecKey(cluster)
		}
	}
	return changed
}

// harm returns why a change is withheld that is valid by itself.
func harm(kind, name string, refused *problem) *problem {
	return problemf(refused.reason, "%s %q, which was accepted before, could not stay: %s", kind, name, refused.message)
}

// sendsTo reports whether a rule of a ring sends packets to a queue of a Cluster.
func sendsTo(ring v1.NodeRing, cluster string) bool {
	return ring.Spec.Filter != nil && slices.ContainsFunc(ring.Spec.Filter.Rules, func(r v1.Rule) bool {
		return r.Queue != nil && r.Queue.Cluster == cluster
	})
}
