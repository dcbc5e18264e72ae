// SPDX-License-Identifier: Apache-2.0

package kmod

// The constants of kmod/include/uapi/linux/ringcap.h that this package uses. A test reads the header and compares.
const (
	abi    = 2
	abiMin = 2

	familyName  = "ringcap"
	familyGroup = "events"
	genlVersion = 1

	keyLength   = 16
	dropReasons = 4
)

// enum ringcap_cmd.
const (
	cmdInfoGet     = 1
	cmdClusterSet  = 2
	cmdClusterDel  = 3
	cmdClusterGet  = 4
	cmdRingSet     = 5
	cmdRingDel     = 6
	cmdRingGet     = 7
	cmdQueueGet    = 8
	cmdQueueReset  = 9
	cmdEvent       = 10
	cmdRulesBegin  = 11
	cmdRulesAdd    = 12
	cmdRulesCommit = 13
	cmdRulesGet    = 15
	cmdQueueRevoke = 19
)

// enum ringcap_attr.
const (
	attrABI             = 2
	attrABIMin          = 3
	attrVersion         = 4
	attrName            = 5
	attrGeneration      = 6
	attrQueues          = 7
	attrLanes           = 8
	attrLaneSize        = 9
	attrBalance         = 10
	attrKey             = 11
	attrWatermark       = 12
	attrTimeoutUS       = 13
	attrMetadata        = 15
	attrInner           = 16
	attrFragments       = 17
	attrWhenFull        = 18
	attrWhenUnattended  = 19
	attrDuplicated      = 22
	attrSpread          = 23
	attrTap             = 24
	attrTapIfindex      = 25
	attrTapDirection    = 26
	attrOutput          = 27
	attrSnapLen         = 28
	attrFilter          = 29
	attrPromisc         = 30
	attrTapChannels     = 31
	attrTransparent     = 32
	attrQuick           = 33
	attrVLANs           = 34
	attrSample          = 35
	attrSampleBy        = 36
	attrDefrag          = 37
	attrHWTStamp        = 38
	attrPlugin          = 39
	attrPluginName      = 40
	attrPluginConfig    = 42
	attrPluginFiltered  = 43
	attrDefaultAction   = 44
	attrTarget          = 45
	attrPatternAction   = 46
	attrExact           = 47
	attrRule            = 48
	attrPattern         = 49
	attrPatternBytes    = 50
	attrPatternFlags    = 51
	attrPatternOffset   = 52
	attrPatternDepth    = 53
	attrPatternMatches  = 54
	attrRuleState       = 56
	attrRulesGeneration = 57
	attrSeen            = 64
	attrSeenBytes       = 65
	attrFiltered        = 66
	attrSampledOut      = 67
	attrPassed          = 68
	attrReflected       = 69
	attrReflectFailed   = 70
	attrAbsorbed        = 71
	attrDirected        = 72
	attrQueue           = 75
	attrAttached        = 76
	attrAttachedPID     = 77
	attrDelivered       = 78
	attrDeliveredBytes  = 79
	attrDropped         = 80
	attrUnreadBytes     = 81
	attrMemory          = 82
	attrDevT            = 84
	attrEvent           = 85
	attrTapFollows      = 89
	attrAttachment      = 90
	attrTruncated       = 91
	attrTruncatedBytes  = 92
)

// enum ringcap_event.
const (
	eventAttached = 1
	eventDetached = 2
	eventTapGone  = 3
)

// Which fields of a wildcard rule a packet is compared with: RINGCAP_MATCH_*.
const (
	matchSourceMAC = 1 << iota
	matchDestinationMAC
	matchEtherType
	matchVLAN
	matchInnerVLAN
	matchProtocol
	matchSource
	matchDestination
	matchSourcePort
	matchDestinationPort
	matchTCPFlags
	matchTunnelID
	matchInnerSource
	matchInnerDestination
)

const (
	ruleBoth      = 1 << 0 // RINGCAP_RULE_BOTH
	patternNoCase = 1 << 0 // RINGCAP_PATTERN_NOCASE
)
