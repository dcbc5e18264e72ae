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
	cmdInfoGet    = 1
	cmdClusterSet = 2
	cmdClusterDel = 3
	cmdClusterGet = 4
	cmdRingSet    = 5
	cmdRingDel    = 6
	cmdRingGet    = 7
	cmdQueueGet   = 8
	cmdQueueReset = 9
	cmdEvent      = 10
)

// enum ringcap_attr.
const (
	attrABI            = 2
	attrABIMin         = 3
	attrVersion        = 4
	attrName           = 5
	attrGeneration     = 6
	attrQueues         = 7
	attrLanes          = 8
	attrLaneSize       = 9
	attrBalance        = 10
	attrKey            = 11
	attrWatermark      = 12
	attrTimeoutUS      = 13
	attrTap            = 24
	attrTapIfindex     = 25
	attrTapDirection   = 26
	attrOutput         = 27
	attrSnapLen        = 28
	attrFilter         = 29
	attrPromisc        = 30
	attrSeen           = 64
	attrSeenBytes      = 65
	attrFiltered       = 66
	attrSampledOut     = 67
	attrPassed         = 68
	attrQueue          = 75
	attrAttached       = 76
	attrDelivered      = 78
	attrDeliveredBytes = 79
	attrDropped        = 80
	attrUnreadBytes    = 81
	attrMemory         = 82
	attrDevT           = 84
	attrEvent          = 85
)

// enum ringcap_event.
const (
	eventAttached = 1
	eventDetached = 2
	eventTapGone  = 3
)
