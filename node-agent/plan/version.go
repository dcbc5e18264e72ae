// SPDX-License-Identifier: Apache-2.0

package plan

import v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"

// versionIsKnown refuses an entry of a later operator. Its spec may have fields that this agent would ignore.
func versionIsKnown(version int32) *problem {
	if version > v1.NodeEntryVersion {
		return problemf(v1.ReasonAgentTooOld, "it is written in version %d of node entries, and this node's agent knows %d: "+
			"upgrade the agent to the operator's release", version, v1.NodeEntryVersion)
	}
	return nil
}
