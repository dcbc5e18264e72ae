// SPDX-License-Identifier: Apache-2.0

package kmod

// The constants of kmod/include/uapi/linux/ringcap.h that this package uses. A test reads the header and compares.
const (
	abi    = 1
	abiMin = 1

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
	attrTap            = 15
	attrTapIfindex     = 16
	attrTapDirection   = 17
	attrOutput         = 18
	attrSnapLen        = 19
	attrFilter         = 20
	attrPromisc        = 21
	attrSeen           = 22
	attrSeenBytes      = 23
	attrFiltered       = 24
	attrSampledOut     = 25
	attrPassed         = 26
	attrQueue          = 27
	attrAttached       = 28
	attrDelivered      = 30
	attrDeliveredBytes = 31
	attrDropped        = 32
	attrUnreadBytes    = 33
	attrMemory         = 34
	attrDevT           = 36
	attrEvent          = 37
)

// enum ringcap_event.
const (
	eventAttached = 1
	eventDetached = 2
	eventTapGone  = 3
)
