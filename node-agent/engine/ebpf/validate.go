// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"regexp"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// maxVLAN is the greatest VLAN id of IEEE 802.1Q.
const maxVLAN = 4094

var namePattern = regexp.MustCompile(`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`)

func validateName(name string) error {
	if len(name) > maxNameLen || !namePattern.MatchString(name) {
		return fmt.Errorf("name %q: must be 1 to %d of a-z, 0-9, - and ., the first and the last a letter or digit",
			name, maxNameLen)
	}
	return nil
}

func validateCluster(c capture.Cluster) error {
	if err := validateName(c.Name); err != nil {
		return err
	}
	if c.Queues < 1 || c.Queues > maxQueues {
		return fmt.Errorf("%d queues: must be 1 to %d", c.Queues, maxQueues)
	}
	if c.QueueBytes < minQueueBytes || c.QueueBytes > maxQueueBytes || bits.OnesCount32(c.QueueBytes) != 1 ||
		c.QueueBytes%uint32(os.Getpagesize()) != 0 {
		return fmt.Errorf("queues of %d bytes: must be a power of two from %d to %d, in whole pages", c.QueueBytes,
			minQueueBytes, maxQueueBytes)
	}
	if err := newQueueShape(c.Lanes, c.QueueBytes, possibleCPUs()).check(); err != nil {
		return err
	}
	if c.Inline != nil {
		return unsupported("in line needs the kernel module")
	}
	if c.ShuntQuota > maxShunts {
		return fmt.Errorf("%d flows to shunt: must be at most %d", c.ShuntQuota, maxShunts)
	}
	if c.Balance > capture.BalanceRxQueue || c.Fragments > capture.FragmentsWithFlow ||
		max(c.WhenFull, c.WhenUnattended) > capture.PolicySpread {
		return unsupported(fmt.Sprintf("balance type %d, fragments %d, whenFull %d, whenUnattended %d", c.Balance, c.Fragments,
			c.WhenFull, c.WhenUnattended))
	}
	return nil
}

func validateRing(r capture.Ring) error {
	if err := validateName(r.Name); err != nil {
		return err
	}
	if r.SnapLen < 1 || r.SnapLen > maxSnapLen {
		return fmt.Errorf("snap length %d: must be 1 to %d", r.SnapLen, maxSnapLen)
	}
	if len(r.Outputs) > maxOutputs {
		return fmt.Errorf("%d outputs: at most %d", len(r.Outputs), maxOutputs)
	}
	for i, name := range r.Outputs {
		if slices.Contains(r.Outputs[:i], name) {
			return fmt.Errorf("output %s is named twice", name)
		}
	}
	if len(r.Taps) > maxTaps {
		return fmt.Errorf("%d taps: at most %d", len(r.Taps), maxTaps)
	}
	for _, id := range r.VLANs {
		if id > maxVLAN {
			return fmt.Errorf("VLAN id %d: must be 1 to %d, or 0 for packets without a tag", id, maxVLAN)
		}
	}
	if len(r.Filter) > maxFilter {
		return fmt.Errorf("a filter of %d instructions: at most %d", len(r.Filter), maxFilter)
	}
	for _, t := range r.Taps {
		for _, queue := range t.RxQueues {
			if queue >= maxRxQueues {
				return fmt.Errorf("tap on %s: receive queue %d: must be below %d", t.Interface, queue, maxRxQueues)
			}
		}
		if t.Direction&capture.Both == 0 || t.Direction&^capture.Both != 0 {
			return fmt.Errorf("tap on %s: direction %d: must be 1 (receive), 2 (transmit) or 3", t.Interface, t.Direction)
		}
	}
	if err := validateRules(r.Rules); err != nil {
		return err
	}
	return supportedRing(r)
}

// usablePoints returns the points on interfaces that exist and carry Ethernet frames, and an error for the others.
func usablePoints(points []tapPoint) (usable []tapPoint, unusable error) {
	reported := map[int]bool{}
	for _, point := range points {
		err := usableInterface(point.Index)
		if err == nil {
			usable = append(usable, point)
		} else if !reported[point.Index] {
			reported[point.Index] = true
			unusable = errors.Join(unusable, err)
		}
	}
	return usable, unusable
}

func usableInterface(index int) error {
	l, err := netlink.LinkByIndex(index)
	if err != nil {
		if _, ok := errors.AsType[netlink.LinkNotFoundError](err); ok {
			return fmt.Errorf("interface %d is not there: the ring is without this tap until it is back", index)
		}
		return fmt.Errorf("look up interface %d: %w", index, err)
	}
	switch encapsulation := l.Attrs().EncapType; encapsulation {
	case "ether", "loopback":
		return nil
	default:
		return fmt.Errorf("interface %s carries %s, not Ethernet frames: %w", l.Attrs().Name, encapsulation,
			capture.ErrUnsupported)
	}
}

// interfaceName returns the interface's name for messages, or its number if it is not there.
func interfaceName(index int) string {
	if name, err := nameOf(index); err == nil {
		return name
	}
	return fmt.Sprintf("interface %d", index)
}

// nameOf looks up one name. net.InterfaceByIndex would list all interfaces.
func nameOf(index int) (string, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", fmt.Errorf("open a socket: %w", err)
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("")
	if err != nil {
		return "", err
	}
	request.SetUint32(uint32(index))
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFNAME, request); err != nil {
		return "", fmt.Errorf("name of interface %d: %w", index, err)
	}
	return request.Name(), nil
}
