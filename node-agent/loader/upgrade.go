// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Upgrade selects when the image's module replaces one that a loader loaded before.
type Upgrade string

// The policies. They never replace modules that somebody else loaded.
const (
	// Never keeps the loaded module until the next boot.
	Never Upgrade = "Never"
	// WhenFree replaces it if nobody would lose a queue.
	WhenFree Upgrade = "WhenFree"
	// Evict does the same, but gives holders some time to end, because the operator evicts them.
	Evict Upgrade = "Evict"
)

// ParseUpgrade checks a policy.
func ParseUpgrade(text string) (Upgrade, error) {
	if u := Upgrade(text); slices.Contains([]Upgrade{Never, WhenFree, Evict}, u) {
		return u, nil
	}
	return "", fmt.Errorf("--upgrade %q: must be Never, WhenFree or Evict", text)
}

// evictionTime is the time for evicted pods to end: Kubernetes' default of 30 s, and some more.
const evictionTime = 45 * time.Second

// upgrade checks whether the image has another module than the loaded one. If so, and if the policy allows it,
// upgrade loads that module.
func (l Loader) upgrade(now Outcome) Outcome {
	now.SourceVersion = l.Kernel.SourceVersion()
	now.Ours = l.Last.Ours && l.Last.SourceVersion == now.SourceVersion
	path, _ := l.find()
	file, err := ReadFile(path)
	if !now.Ours || l.Mode != Load || err != nil || file.SourceVersion == now.SourceVersion {
		return now
	}
	now.Available = fmt.Sprintf("%s (%s)", file.Version, file.SourceVersion)
	if l.Upgrade == Never {
		now.Message += fmt.Sprintf("; the image has another, %s: it is for the next boot, or for agent.module.upgrade.policy", now.Available)
		return now
	}
	if ahead := l.foreseeFile(path, true); !ahead.Ready {
		now.Message += fmt.Sprintf("; it stays, for %s would not be taken: %s: %s", now.Available, ahead.Reason, ahead.Message)
		return now
	}
	if holders := l.waitForHolders(); len(holders) > 0 {
		return now.inUse(strings.Join(holders, ", "))
	}
	if err := l.Kernel.Unload(); err != nil {
		return now.inUse(err.Error())
	}
	return l.loadPath(path)
}

// waitForHolders waits, and returns who still holds the module.
func (l Loader) waitForHolders() []string {
	until := time.Now()
	if l.Upgrade == Evict {
		until = until.Add(evictionTime)
	}
	for {
		holders, err := l.Holders()
		if err != nil {
			holders = []string{fmt.Sprintf("it cannot be found out who (%v)", err)}
		}
		if len(holders) == 0 || time.Now().After(until) {
			return holders
		}
		time.Sleep(time.Second)
	}
}

func (o Outcome) inUse(by string) Outcome {
	o.Reason = v1.ReasonInUse
	o.Message = fmt.Sprintf("module %s stays loaded, and %s waits: it is in use by %s. With agent.module.upgrade.policy WhenFree it is tried again "+
		"when they have ended, with Evict they are evicted", o.Version, o.Available, by)
	return o
}
