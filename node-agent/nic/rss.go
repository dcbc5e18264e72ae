// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/plan"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// defaultTable stands for the driver's own table: all queues in turn.
const defaultTable = "default"

const rssQueuesName = "rss.queues"

// rssQueuesTunable is the table of ethtool -X: "default", or the queue of each entry.
func rssQueuesTunable() tunable {
	return tunable{
		name: rssQueuesName, setting: plan.SettingRSSQueues, stage: stageDevice,
		resolve: func(dev, desired string) (string, error) {
			state, queues, err := readTable(dev)
			if err != nil {
				return "", err
			}
			if _, err := within(desired, uint32(queues), "RX queues"); err != nil {
				return "", err
			}
			spread, _ := strconv.Atoi(desired)
			return tableText(spreadOver(len(state.table), spread), queues), nil
		},
		read: func(dev string) (string, error) {
			state, queues, err := readTable(dev)
			return tableText(state.table, queues), err
		},
		write: func(dev, value string) error {
			if value == defaultTable {
				return refused(writeRSS(dev, nil, resetTable, nil))
			}
			var table []uint32
			for _, word := range strings.Split(value, ",") {
				queue, err := strconv.ParseUint(word, 10, 32)
				if err != nil {
					return err
				}
				table = append(table, uint32(queue))
			}
			return refused(writeRSS(dev, table, uint32(len(table)), nil))
		},
	}
}

// readTable returns the state and the number of RX queues.
func readTable(dev string) (rss, int, error) {
	state, err := readRSS(dev)
	if err != nil {
		return rss{}, 0, unsupported(err)
	}
	if len(state.table) == 0 {
		return rss{}, 0, fmt.Errorf("its driver has no table of RX queues: %w", errNotSupported)
	}
	counts, err := readRxQueues(dev)
	return state, rxQueues(counts), err
}

func spreadOver(entries, queues int) []uint32 {
	table := make([]uint32, entries)
	for i := range table {
		table[i] = uint32(i % queues)
	}
	return table
}

func tableText(table []uint32, queues int) string {
	words, isDefault := make([]string, len(table)), true
	for i, queue := range table {
		words[i] = strconv.Itoa(int(queue))
		isDefault = isDefault && queues > 0 && int(queue) == i%queues
	}
	if isDefault {
		return defaultTable
	}
	return strings.Join(words, ",")
}

// symmetricKey returns a key with which Toeplitz hashing gives both directions of a flow one value: 0x6d5a repeated
// (Woo and Park, 2012).
func symmetricKey(size int) []byte { return bytes.Repeat([]byte{0x6d, 0x5a}, (size+1)/2)[:size] }

// toeplitz is ETH_RSS_HASH_TOP, the function that the key is for.
const toeplitz = 1

// rssHashTunable is the key of the hash, in hexadecimal.
func rssHashTunable() tunable {
	return tunable{
		name: "rss.hash", setting: plan.SettingRSSHash, stage: stageDevice,
		resolve: func(dev, _ string) (string, error) {
			state, err := readKey(dev)
			if err == nil && state.function != toeplitz && state.function != 0 {
				err = fmt.Errorf("its hash is not Toeplitz's: %w", errNotSupported)
			}
			return hex.EncodeToString(symmetricKey(len(state.key))), err
		},
		read: func(dev string) (string, error) {
			state, err := readKey(dev)
			return hex.EncodeToString(state.key), err
		},
		write: func(dev, value string) error {
			key, err := hex.DecodeString(value)
			if err != nil {
				return err
			}
			return refused(writeRSS(dev, nil, keepTable, key))
		},
	}
}

func readKey(dev string) (rss, error) {
	state, err := readRSS(dev)
	if err != nil {
		return rss{}, unsupported(err)
	}
	if len(state.key) == 0 {
		return rss{}, fmt.Errorf("its driver does not let its RSS key be set: %w", errNotSupported)
	}
	return state, nil
}

// Fields of a hash, of linux/ethtool.h: RXH_IP_SRC and RXH_IP_DST, RXH_L4_B_0_1 and RXH_L4_B_2_3.
const (
	hashAddresses = 1<<4 | 1<<5
	hashPorts     = 1<<6 | 1<<7
)

// flowKinds holds the kinds of packets with ports in the hash: TCP_V4_FLOW and so on.
var flowKinds = map[string]uint32{"tcp4": 1, "udp4": 2, "tcp6": 5, "udp6": 6}

// rssFieldsTunable holds the fields of the hash, by kind of packets: "tcp4=f0 udp4=30".
func rssFieldsTunable() tunable {
	return tunable{
		name: "rss.fields", setting: plan.SettingRSSFields, stage: stageDevice,
		resolve: func(dev, desired string) (string, error) {
			fields, err := readFields(dev)
			want := uint64(hashAddresses)
			if desired == string(v1.RSSFieldsAddressesAndPorts) {
				want |= hashPorts
			}
			for kind := range fields {
				fields[kind] = strconv.FormatUint(want, 16)
			}
			return pairs(fields), err
		},
		read: func(dev string) (string, error) {
			fields, err := readFields(dev)
			return pairs(fields), err
		},
		write: writeFields,
	}
}

func readFields(dev string) (map[string]string, error) {
	fields := map[string]string{}
	for kind, flow := range flowKinds {
		bits, err := readHashFields(dev, flow)
		if errors.Is(err, unix.EINVAL) {
			continue
		}
		if err != nil {
			return nil, unsupported(err)
		}
		fields[kind] = strconv.FormatUint(bits, 16)
	}
	if len(fields) == 0 {
		return nil, fmt.Errorf("its driver hashes no TCP or UDP: %w", errNotSupported)
	}
	return fields, nil
}

// writeFields sets the values that differ. Drivers refuse some kinds even if nothing would change.
func writeFields(dev, value string) error {
	have, err := readFields(dev)
	if err != nil {
		return err
	}
	for kind, text := range parsePairs(value) {
		if have[kind] == text {
			continue
		}
		bits, err := strconv.ParseUint(text, 16, 64)
		if err != nil {
			return err
		}
		if err := writeHashFields(dev, flowKinds[kind], bits); err != nil {
			return fmt.Errorf("%s: %w", kind, refused(err))
		}
	}
	return nil
}
