// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// switching is a change of something that is on or off.
type switching string

const (
	unchanged switching = ""
	setOn     switching = "on"
	setOff    switching = "off"
)

// deviceState is what an interface is like.
type deviceState struct {
	index       int
	up          bool
	promiscuous bool
	// features that are on and can be turned off.
	features map[string]bool
}

// deviceChange is what to change of it.
type deviceChange struct {
	up, promiscuous         switching
	featuresOn, featuresOff []string
}

func (c deviceChange) nothing() bool {
	return c.up == unchanged && c.promiscuous == unchanged && len(c.featuresOn) == 0 && len(c.featuresOff) == 0
}

// device reads and changes interfaces; read returns os.ErrNotExist (wrapped) for one that is not there.
type device interface {
	read(name string) (deviceState, error)
	change(name string, todo deviceChange) error
}

// kernelDevice are the interfaces of the current network namespace.
type kernelDevice struct{}

func (kernelDevice) read(name string) (deviceState, error) {
	link, err := netlink.LinkByName(name)
	if err != nil {
		var missing netlink.LinkNotFoundError
		if errors.As(err, &missing) {
			return deviceState{}, fmt.Errorf("interface %s: %w", name, os.ErrNotExist)
		}
		return deviceState{}, fmt.Errorf("read interface %s: %w", name, err)
	}
	attrs := link.Attrs()
	state := deviceState{
		index: attrs.Index, up: attrs.RawFlags&unix.IFF_UP != 0, promiscuous: attrs.RawFlags&unix.IFF_PROMISC != 0,
		features: map[string]bool{},
	}
	eth, err := ethtool.NewEthtool()
	if err != nil {
		return deviceState{}, fmt.Errorf("open an ethtool socket: %w", err)
	}
	defer eth.Close()
	features, err := eth.FeaturesWithState(name)
	if err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
		return deviceState{}, fmt.Errorf("read the offloads of %s: %w", name, err)
	}
	for _, feature := range offloads {
		f, ok := features[feature]
		state.features[feature] = ok && f.Active && f.Available && !f.NeverChanged
	}
	return state, nil
}

func (kernelDevice) change(name string, todo deviceChange) error {
	if err := changeFeatures(name, todo.featuresOn, todo.featuresOff); err != nil {
		return err
	}
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("find interface %s: %w", name, err)
	}
	for _, step := range []struct {
		to      switching
		on, off func(netlink.Link) error
		what    string
	}{
		{todo.promiscuous, netlink.SetPromiscOn, netlink.SetPromiscOff, "promiscuous mode"},
		{todo.up, netlink.LinkSetUp, netlink.LinkSetDown, "link"},
	} {
		if err := flip(link, step.to, step.on, step.off); err != nil {
			return fmt.Errorf("turn the %s of %s %s: %w", step.what, name, step.to, err)
		}
	}
	return nil
}

func flip(link netlink.Link, to switching, on, off func(netlink.Link) error) error {
	switch to {
	case setOn:
		return on(link)
	case setOff:
		return off(link)
	default:
		return nil
	}
}

func changeFeatures(name string, on, off []string) error {
	if len(on) == 0 && len(off) == 0 {
		return nil
	}
	eth, err := ethtool.NewEthtool()
	if err != nil {
		return fmt.Errorf("open an ethtool socket: %w", err)
	}
	defer eth.Close()
	todo := map[string]bool{}
	for _, feature := range on {
		todo[feature] = true
	}
	for _, feature := range off {
		todo[feature] = false
	}
	if err := eth.Change(name, todo); err != nil {
		return fmt.Errorf("turn %s of %s off (%s on): %w", strings.Join(off, ", "), name, strings.Join(on, ", "), err)
	}
	return nil
}
