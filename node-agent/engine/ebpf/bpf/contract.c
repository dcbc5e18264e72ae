/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Definitions that the agent's Go code shares with the programs and with consumers. This file is compiled for its type
 * information only and is never loaded: node-agent/engine/ebpf/generate writes types.go from it.
 */
#include "ringcap.bpf.c"

/* Named as in Go. */
enum constants {
	/* The contract with consumers */
	protocolMagic = RINGCAP_MAGIC,
	protocolABI = RINGCAP_ABI,
	protocolABIMin = RINGCAP_HANDOVER_ABI_MIN,
	maxNameLen = RINGCAP_NAME_MAX,
	maxQueues = RINGCAP_QUEUES_MAX,
	maxTaps = RINGCAP_TAPS_MAX,
	maxSnapLen = RINGCAP_SNAPLEN_MAX,
	maxFilter = RINGCAP_FILTER_MAX,
	maxRxQueues = RINGCAP_RX_QUEUES_MAX,
	maxLanes = RINGCAP_LANES_MAX,
	laneTail = RINGCAP_LANE_TAIL,
	shortHeader = RINGCAP_SLOT_SHORT,
	longHeader = sizeof(struct ringcap_slot),
	hashedFlag = RINGCAP_SLOT_HASHED,
	minQueueBytes = RINGCAP_LANE_SIZE_MIN,
	maxQueueBytes = RINGCAP_LANE_SIZE_MAX,
	maxExact = RINGCAP_EXACT_MAX,
	maxWildcard = RINGCAP_RULES_MAX,
	maxPatterns = RINGCAP_PATTERNS_MAX,
	maxShunts = RINGCAP_SHUNTS_MAX,
	maxShuntBatch = RINGCAP_SHUNT_BATCH,
	shuntAdd = RINGCAP_SHUNT_ADD,
	shuntRemove = RINGCAP_SHUNT_REMOVE,
	shuntRead = RINGCAP_SHUNT_READ,
	shuntEnded = RINGCAP_SHUNT_ENDED,
	countsShunted = RINGCAP_COUNTS_SHUNTED,

	/* The programs' sizes */
	maxNodeQueues = QUEUES_MAX,
	laneReleased = LANE_RELEASED,
	laneLine = LANE_LINE,
	maxDirect = DIRECT_MAX,
	unattendedCPUs = UNATTENDED_CPUS,
	maxShapes = SHAPES_MAX,
	sieveFields = SIEVE_FIELDS,
	sieveRowsLog = SIEVE_ROWS_LOG,
	sieveWords = SIEVE_WORDS,
	briefWords = BRIEF_WORDS,
	wildProbes = WILD_PROBES,
	learntPlacesLog = LEARNT_PLACES_LOG,
	learntLocks = LEARNT_LOCKS,
	maxShuntList = SHUNT_LIST_MAX,
	maxChoicesHere = CHOICES_MAX,
	parseMax = RC_PARSE_MAX,
	innerMax = RC_INNER_MAX,
	patternHit = PATTERN_HIT,

	/* programConfig.Flags */
	configVLANs = CONFIG_VLANS,
	configRxQueues = CONFIG_RX_QUEUES,
	configExact = CONFIG_EXACT,
	configLearn = CONFIG_LEARN,
	configWild = CONFIG_WILD,
	configInnerKey = CONFIG_INNER_KEY,
	configPatterns = CONFIG_PATTERNS,
	configIdle = CONFIG_IDLE,
	configPlain = CONFIG_PLAIN,
	configFilter = CONFIG_FILTER,
	configRuled = CONFIG_RULED,
	configShunts = CONFIG_SHUNTS,

	/* The first word of packetKey */
	hasMACs = RC_HAS_MACS,
	hasIPv4 = RC_HAS_IPV4,
	hasIPv6 = RC_HAS_IPV6,
	hasIP = RC_HAS_IP,
	hasPorts = RC_HAS_PORTS,
	hasTCP = RC_HAS_TCP,
	hasTunnelID = RC_HAS_TUNNEL_ID,
	hasInnerIPv4 = RC_HAS_INNER_IPV4,
	hasInnerIPv6 = RC_HAS_INNER_IPV6,
} constants;

struct ringcap_lane_kernel lane_kernel;
struct ringcap_consumer_page consumer_page_type;
struct ringcap_handover_request handover_request;
struct ringcap_handover_reply handover_reply;
struct bell_request bell_request;
struct shunt shunt_place;
struct shunt_hash shunt_hash_first;
struct ringcap_exact exact_type;
struct ringcap_exact_state exact_state;
struct ringcap_shunt_message shunt_message;
