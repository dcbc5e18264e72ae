// SPDX-License-Identifier: Apache-2.0

// Command pool is a stand-in for sriov-network-device-plugin: it advertises the PCI devices that its configuration selects in the
// same format, under the same resource names, and tells containers about them as that does. It neither looks after the devices'
// health nor registers again with a kubelet that starts again.
//
//	pool CONFIG DEVICES PLUGINS     say /etc/pcidp/config.json /sys/bus/pci/devices /var/lib/kubelet/device-plugins
package main

import (
	"context"
	"errors"
	"log"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

// run advertises until ctx ends.
func run(ctx context.Context, args []string) error {
	if len(args) != 3 {
		return errors.New("usage: pool CONFIG DEVICES PLUGINS")
	}
	pools, err := readPools(args[0])
	if err != nil {
		return err
	}
	for _, pool := range pools {
		devices, err := pool.devices(args[1])
		if err != nil {
			return err
		}
		p := &plugin{pool: pool, devices: devices, done: ctx.Done()}
		if err := p.start(ctx, args[2]); err != nil {
			return err
		}
		log.Printf("%s: %v", pool.name(), devices)
	}
	<-ctx.Done()
	return nil
}
