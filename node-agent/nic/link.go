// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/node"
	"github.com/ringcap/ringcap/node-agent/plan"
)

// linkName is the tunable that brings an interface up. Every captured interface is up.
const linkName = "link"

// mergingFeatures holds the kernel's names of the features that merge received packets.
var mergingFeatures = []string{"rx-gro", "rx-lro", "rx-gro-hw"}

// findLink finds a link. The error is os.ErrNotExist (wrapped) if the interface does not exist.
func findLink(dev string) (netlink.Link, error) {
	link, err := netlink.LinkByName(dev)
	if err == nil {
		return link, nil
	}
	var missing netlink.LinkNotFoundError
	if errors.As(err, &missing) {
		return nil, fmt.Errorf("interface %s: %w", dev, os.ErrNotExist)
	}
	return nil, fmt.Errorf("read interface %s: %w", dev, err)
}

// newestLink returns the highest index of the network namespace's interfaces.
func newestLink() (newest int, err error) {
	links, err := node.Links()
	if err != nil {
		return 0, fmt.Errorf("list interfaces: %w", err)
	}
	for _, link := range links {
		newest = max(newest, link.Attrs().Index)
	}
	return newest, nil
}

func linkTunable() tunable {
	t := flagTunable(linkName, "", unix.IFF_UP, netlink.LinkSetUp, setDownUnlessUsed)
	t.stage = stageLink
	return t
}

// setDownUnlessUsed sets an interface down, as it was before its capture. It leaves the interface up if it is now in
// use: it has a master, or an address other than the one that the kernel gives each interface.
func setDownUnlessUsed(link netlink.Link) error {
	name := link.Attrs().Name
	addresses, err := node.Dump(func() ([]netlink.Addr, error) { return netlink.AddrList(link, netlink.FAMILY_ALL) })
	if err != nil {
		return fmt.Errorf("read the addresses of %s: %w", name, err)
	}
	used := func(a netlink.Addr) bool { return !a.IP.IsLinkLocalUnicast() }
	if link.Attrs().MasterIndex != 0 || slices.ContainsFunc(addresses, used) {
		slog.Info("Leave an interface up: it was down before it was captured, and is in use now", "interface", name)
		return nil
	}
	return netlink.LinkSetDown(link)
}

func promiscuousTunable() tunable {
	return flagTunable("promiscuous", plan.SettingPromiscuous, unix.IFF_PROMISC, netlink.SetPromiscOn, netlink.SetPromiscOff)
}

// flagTunable returns a tunable for a flag, as ip-link(8) sets it.
func flagTunable(name string, setting plan.Setting, flag uint32, setOn, setOff func(netlink.Link) error) tunable {
	return tunable{
		name: name, setting: setting, stage: stageDevice,
		read: func(dev string) (string, error) {
			link, err := findLink(dev)
			if err != nil {
				return "", err
			}
			return onOff(link.Attrs().RawFlags&flag != 0), nil
		},
		write: func(dev, value string) error {
			link, err := findLink(dev)
			if err != nil {
				return err
			}
			if value == on {
				return setOn(link)
			}
			return setOff(link)
		},
	}
}

// featureTunable returns a tunable for a feature, as ethtool -k shows it. A feature that the driver does not have is
// off.
func featureTunable(feature string, setting plan.Setting) tunable {
	return tunable{
		name: feature, setting: setting, stage: stageDevice,
		read: func(dev string) (string, error) {
			is, err := readFeature(dev, feature)
			if errors.Is(err, unix.EOPNOTSUPP) {
				return off, nil
			}
			return onOff(is), err
		},
		write: func(dev, value string) error {
			err := withEthtool(func(e *ethtool.Ethtool) error { return e.Change(dev, map[string]bool{feature: value == on}) })
			return refused(err)
		},
	}
}

func withEthtool(use func(*ethtool.Ethtool) error) error {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return fmt.Errorf("open an ethtool socket: %w", err)
	}
	defer e.Close()
	return use(e)
}

func onOff(is bool) string {
	if is {
		return on
	}
	return off
}
