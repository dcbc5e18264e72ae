// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"errors"
	"fmt"
	"os"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/plan"
)

// linkName is the knob that brings an interface up: every captured one is.
const linkName = "link"

// mergingFeatures are the kernel's names of the features that merge received packets.
var mergingFeatures = []string{"rx-gro", "rx-lro", "rx-gro-hw"}

// findLink's error is os.ErrNotExist (wrapped) for an interface that is not there.
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

func linkKnob() knob {
	k := flagKnob(linkName, "", unix.IFF_UP, netlink.LinkSetUp, netlink.LinkSetDown)
	k.stage = stageLink
	return k
}

func promiscuousKnob() knob {
	return flagKnob("promiscuous", plan.SettingPromiscuous, unix.IFF_PROMISC, netlink.SetPromiscOn, netlink.SetPromiscOff)
}

// flagKnob is a flag as ip-link(8) sets it.
func flagKnob(name string, setting plan.Setting, flag uint32, setOn, setOff func(netlink.Link) error) knob {
	return knob{
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

// featureKnob is a feature as ethtool -k shows it. One that the driver does not have is off.
func featureKnob(feature string, setting plan.Setting) knob {
	return knob{
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
