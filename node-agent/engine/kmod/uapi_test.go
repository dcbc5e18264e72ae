// SPDX-License-Identifier: Apache-2.0

package kmod

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const header = "../../../kmod/include/uapi/linux/ringcap.h"

// The kernel's contract is the header; this package's numbers must be its.
func TestConstantsAreTheHeaders(t *testing.T) {
	text, err := os.ReadFile(header)
	require.NoError(t, err)
	there := headerConstants(t, string(text))
	for name, value := range map[string]int{
		"RINGCAP_ABI": abi, "RINGCAP_ABI_MIN": abiMin, "RINGCAP_KEY_LEN": keyLength, "RINGCAP_GENL_VERSION": genlVersion,
		"RINGCAP_DROP_REASONS": dropReasons,
		"RINGCAP_CMD_INFO_GET": cmdInfoGet, "RINGCAP_CMD_CLUSTER_SET": cmdClusterSet,
		"RINGCAP_CMD_CLUSTER_DEL": cmdClusterDel, "RINGCAP_CMD_CLUSTER_GET": cmdClusterGet,
		"RINGCAP_CMD_RING_SET": cmdRingSet, "RINGCAP_CMD_RING_DEL": cmdRingDel, "RINGCAP_CMD_RING_GET": cmdRingGet,
		"RINGCAP_CMD_QUEUE_GET": cmdQueueGet, "RINGCAP_CMD_QUEUE_RESET": cmdQueueReset, "RINGCAP_CMD_QUEUE_REVOKE": cmdQueueRevoke, "RINGCAP_CMD_EVENT": cmdEvent,
		"RINGCAP_CMD_RULES_BEGIN": cmdRulesBegin, "RINGCAP_CMD_RULES_ADD": cmdRulesAdd,
		"RINGCAP_CMD_RULES_COMMIT": cmdRulesCommit, "RINGCAP_CMD_RULES_GET": cmdRulesGet, "RINGCAP_A_ABI": attrABI,
		"RINGCAP_A_ABI_MIN": attrABIMin, "RINGCAP_A_VERSION": attrVersion, "RINGCAP_A_NAME": attrName,
		"RINGCAP_A_GENERATION": attrGeneration, "RINGCAP_A_QUEUES": attrQueues, "RINGCAP_A_LANES": attrLanes,
		"RINGCAP_A_LANE_SIZE": attrLaneSize, "RINGCAP_A_BALANCE": attrBalance, "RINGCAP_A_KEY": attrKey,
		"RINGCAP_A_WATERMARK": attrWatermark, "RINGCAP_A_TIMEOUT_US": attrTimeoutUS, "RINGCAP_A_METADATA": attrMetadata,
		"RINGCAP_A_INNER": attrInner, "RINGCAP_A_FRAGMENTS": attrFragments, "RINGCAP_A_WHEN_FULL": attrWhenFull,
		"RINGCAP_A_WHEN_UNATTENDED": attrWhenUnattended, "RINGCAP_A_DUPLICATED": attrDuplicated,
		"RINGCAP_A_SPREAD": attrSpread, "RINGCAP_A_TAP": attrTap, "RINGCAP_A_TAP_IFINDEX": attrTapIfindex,
		"RINGCAP_A_TAP_DIRECTION": attrTapDirection, "RINGCAP_A_OUTPUT": attrOutput, "RINGCAP_A_SNAPLEN": attrSnapLen,
		"RINGCAP_A_FILTER": attrFilter, "RINGCAP_A_PROMISC": attrPromisc, "RINGCAP_A_TAP_CHANNELS": attrTapChannels,
		"RINGCAP_A_TRANSPARENT": attrTransparent, "RINGCAP_A_QUICK": attrQuick, "RINGCAP_A_VLANS": attrVLANs,
		"RINGCAP_A_SAMPLE": attrSample, "RINGCAP_A_SAMPLE_BY": attrSampleBy, "RINGCAP_A_DEFRAG": attrDefrag,
		"RINGCAP_A_HWTSTAMP": attrHWTStamp, "RINGCAP_A_PLUGIN": attrPlugin, "RINGCAP_A_PLUGIN_NAME": attrPluginName,
		"RINGCAP_A_PLUGIN_CONFIG": attrPluginConfig, "RINGCAP_A_PLUGIN_FILTERED": attrPluginFiltered,
		"RINGCAP_A_DEFAULT_ACTION": attrDefaultAction, "RINGCAP_A_TARGET": attrTarget,
		"RINGCAP_A_PATTERN_ACTION": attrPatternAction, "RINGCAP_A_RULE": attrRule, "RINGCAP_A_EXACT": attrExact, "RINGCAP_A_PATTERN": attrPattern,
		"RINGCAP_A_PATTERN_BYTES": attrPatternBytes, "RINGCAP_A_PATTERN_FLAGS": attrPatternFlags,
		"RINGCAP_A_PATTERN_OFFSET": attrPatternOffset, "RINGCAP_A_PATTERN_DEPTH": attrPatternDepth,
		"RINGCAP_A_PATTERN_MATCHES": attrPatternMatches, "RINGCAP_A_RULE_STATE": attrRuleState,
		"RINGCAP_A_RULES_GENERATION": attrRulesGeneration, "RINGCAP_A_SEEN": attrSeen, "RINGCAP_A_SEEN_BYTES": attrSeenBytes,
		"RINGCAP_A_FILTERED": attrFiltered, "RINGCAP_A_SAMPLED_OUT": attrSampledOut, "RINGCAP_A_PASSED": attrPassed,
		"RINGCAP_A_REFLECTED": attrReflected, "RINGCAP_A_REFLECT_FAILED": attrReflectFailed,
		"RINGCAP_A_ABSORBED": attrAbsorbed, "RINGCAP_A_DIRECTED": attrDirected, "RINGCAP_A_QUEUE": attrQueue,
		"RINGCAP_A_ATTACHED": attrAttached, "RINGCAP_A_DELIVERED": attrDelivered,
		"RINGCAP_A_DELIVERED_BYTES": attrDeliveredBytes, "RINGCAP_A_DROPPED": attrDropped,
		"RINGCAP_A_UNREAD_BYTES": attrUnreadBytes, "RINGCAP_A_MEMORY": attrMemory, "RINGCAP_A_DEVT": attrDevT,
		"RINGCAP_A_EVENT": attrEvent, "RINGCAP_A_TAP_FOLLOWS": attrTapFollows, "RINGCAP_A_ATTACHMENT": attrAttachment,
		"RINGCAP_A_TRUNCATED": attrTruncated, "RINGCAP_A_TRUNCATED_BYTES": attrTruncatedBytes,
		"RINGCAP_EVENT_ATTACHED": eventAttached, "RINGCAP_EVENT_DETACHED": eventDetached, "RINGCAP_EVENT_TAP_GONE": eventTapGone,
	} {
		if assert.Contains(t, there, name) {
			assert.Equal(t, there[name], value, name)
		}
	}
	assert.Contains(t, string(text), `RINGCAP_GENL_NAME	"`+familyName+`"`)
	assert.Contains(t, string(text), `RINGCAP_GENL_MCGRP	"`+familyGroup+`"`)
}

var (
	comments   = regexp.MustCompile(`(?s)/\*.*?\*/`)
	defines    = regexp.MustCompile(`(?m)^#define\s+(\w+)\s+(\d+)\s*$`)
	enums      = regexp.MustCompile(`(?s)enum \w+ \{(.*?)\}`)
	enumerator = regexp.MustCompile(`^(\w+)(?:\s*=\s*(\d+))?$`)
)

// headerConstants reads plain #defines and enums.
func headerConstants(t *testing.T, text string) map[string]int {
	t.Helper()
	text = comments.ReplaceAllString(text, "")
	found := map[string]int{}
	for _, m := range defines.FindAllStringSubmatch(text, -1) {
		found[m[1]], _ = strconv.Atoi(m[2])
	}
	for _, enum := range enums.FindAllStringSubmatch(text, -1) {
		next := 0
		for _, item := range strings.Split(enum[1], ",") {
			m := enumerator.FindStringSubmatch(strings.TrimSpace(item))
			if m == nil {
				continue
			}
			if m[2] != "" {
				next, _ = strconv.Atoi(m[2])
			}
			found[m[1]] = next
			next++
		}
	}
	return found
}
