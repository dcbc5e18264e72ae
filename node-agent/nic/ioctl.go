// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/safchain/ethtool"
	"golang.org/x/sys/unix"
)

// Commands of linux/ethtool.h that the ethtool package has no functions for.
const (
	ethtoolGetFeatures   = 0x3a // ETHTOOL_GFEATURES
	ethtoolGetHashFields = 0x29 // ETHTOOL_GRXFH
	ethtoolSetHashFields = 0x2a // ETHTOOL_SRXFH
	ethtoolGetRSS        = 0x46 // ETHTOOL_GRSSH
	ethtoolSetRSS        = 0x47 // ETHTOOL_SRSSH
)

// ifreq is struct ifreq with a pointer in its union.
type ifreq struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	_    [16]byte
}

// ethtoolCall passes a command's structure, in the machine's byte order, to the driver. The driver may answer in it.
func ethtoolCall(dev string, structure []byte) error {
	if len(dev) >= unix.IFNAMSIZ {
		return fmt.Errorf("interface name %q is too long: %w", dev, unix.EINVAL)
	}
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open an ethtool socket: %w", err)
	}
	defer unix.Close(socket)
	request := ifreq{data: unsafe.Pointer(&structure[0])}
	copy(request.name[:], dev)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(socket), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	runtime.KeepAlive(structure)
	if errno != 0 {
		return errno
	}
	return nil
}

// featureNumbers caches the kernel's numbers, which are the same for all interfaces. To ask for their names takes
// megabytes.
var featureNumbers struct {
	sync.Mutex
	byName map[string]uint
}

func featureNumber(dev, feature string) (number uint, known bool, err error) {
	featureNumbers.Lock()
	defer featureNumbers.Unlock()
	if featureNumbers.byName == nil {
		err = withEthtool(func(e *ethtool.Ethtool) (err error) {
			featureNumbers.byName, err = e.FeatureNames(dev)
			return err
		})
	}
	number, known = featureNumbers.byName[feature]
	return number, known, err
}

// readFeature reports whether a feature is on. A feature that the kernel does not know is off.
func readFeature(dev, feature string) (bool, error) {
	number, known, err := featureNumber(dev, feature)
	if err != nil || !known {
		return false, err
	}
	// struct ethtool_gfeatures: cmd, number of blocks, and for each 32 features a block of what is available,
	// requested, active and never changed.
	const head, block, active = 8, 16, 8
	blocks := number/32 + 1
	request := make([]byte, head+blocks*block)
	binary.NativeEndian.PutUint32(request, ethtoolGetFeatures)
	binary.NativeEndian.PutUint32(request[4:], uint32(blocks))
	err = ethtoolCall(dev, request)
	return binary.NativeEndian.Uint32(request[head+number/32*block+active:])>>(number%32)&1 != 0, err
}

// rss is a NIC's receive side scaling.
type rss struct {
	// table maps each hash to an RX queue.
	table []uint32
	// key of the hash; empty where the driver does not show it.
	key []byte
	// function is the hash function, as a bit of the driver's choice.
	function byte
}

// rssHeader is the size of struct ethtool_rxfh: cmd, context, table's size, key's size, function, 3 + 4 bytes reserved.
const rssHeader = 24

// As the size of the table, resetTable sets the driver's own table, and keepTable sets none.
const (
	resetTable = 0
	keepTable  = 0xffffffff
)

func readRSS(dev string) (rss, error) {
	head := make([]byte, rssHeader)
	binary.NativeEndian.PutUint32(head, ethtoolGetRSS)
	if err := ethtoolCall(dev, head); err != nil {
		return rss{}, err
	}
	entries, keySize := binary.NativeEndian.Uint32(head[8:]), binary.NativeEndian.Uint32(head[12:])
	whole := make([]byte, rssHeader+4*int(entries)+int(keySize))
	copy(whole, head[:16])
	if err := ethtoolCall(dev, whole); err != nil {
		return rss{}, err
	}
	state := rss{function: whole[16], key: whole[rssHeader+4*int(entries):]}
	for i := range int(entries) {
		state.table = append(state.table, binary.NativeEndian.Uint32(whole[rssHeader+4*i:]))
	}
	return state, nil
}

// writeRSS sets the table and, unless it is empty, the key. size is the table's length, resetTable or keepTable.
func writeRSS(dev string, table []uint32, size uint32, key []byte) error {
	whole := make([]byte, rssHeader, rssHeader+4*len(table)+len(key))
	binary.NativeEndian.PutUint32(whole, ethtoolSetRSS)
	binary.NativeEndian.PutUint32(whole[8:], size)
	binary.NativeEndian.PutUint32(whole[12:], uint32(len(key)))
	for _, queue := range table {
		whole = binary.NativeEndian.AppendUint32(whole, queue)
	}
	return ethtoolCall(dev, append(whole, key...))
}

// hashFieldsSize is the size of struct ethtool_rxnfc. Only its first 16 bytes matter here, but the driver may read
// all of it.
const hashFieldsSize = 192

// readHashFields returns the fields in the hash of a kind of packets (TCP_V4_FLOW and so on).
func readHashFields(dev string, flow uint32) (uint64, error) {
	request := make([]byte, hashFieldsSize)
	binary.NativeEndian.PutUint32(request, ethtoolGetHashFields)
	binary.NativeEndian.PutUint32(request[4:], flow)
	err := ethtoolCall(dev, request)
	return binary.NativeEndian.Uint64(request[8:]), err
}

func writeHashFields(dev string, flow uint32, fields uint64) error {
	request := make([]byte, hashFieldsSize)
	binary.NativeEndian.PutUint32(request, ethtoolSetHashFields)
	binary.NativeEndian.PutUint32(request[4:], flow)
	binary.NativeEndian.PutUint64(request[8:], fields)
	return ethtoolCall(dev, request)
}
