// SPDX-License-Identifier: Apache-2.0

package kmod

import (
	"errors"
	"fmt"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// client talks to the module of the current network namespace. It is for one goroutine.
type client struct {
	conn   *genetlink.Conn
	family genetlink.Family
}

// dial looks up the module's family each time, because a reloaded module has another number.
func dial() (*client, error) {
	conn, err := genetlink.Dial(nil)
	if err != nil {
		return nil, fmt.Errorf("open a generic netlink socket: %w", err)
	}
	// If the kernel cannot extend its answers, errors are shorter.
	_ = conn.SetOption(netlink.ExtendedAcknowledge, true)
	family, err := conn.GetFamily(familyName)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("find the generic netlink family %q: %w", familyName, err)
	}
	return &client{conn: conn, family: family}, nil
}

func (c *client) close() { c.conn.Close() }

// do sends a command. It only returns whether the command succeeded.
func (c *client) do(command uint8, attributes []byte) error {
	_, err := c.execute(command, attributes, netlink.Request|netlink.Acknowledge)
	return err
}

// dump collects all messages of a command's dump.
func (c *client) dump(command uint8, attributes []byte) ([]genetlink.Message, error) {
	return c.execute(command, attributes, netlink.Request|netlink.Dump)
}

// get collects the answer to a command.
func (c *client) get(command uint8, attributes []byte) ([]genetlink.Message, error) {
	return c.execute(command, attributes, netlink.Request)
}

func (c *client) execute(command uint8, attributes []byte, flags netlink.HeaderFlags) ([]genetlink.Message, error) {
	message := genetlink.Message{Header: genetlink.Header{Command: command, Version: genlVersion}, Data: attributes}
	answers, err := c.conn.Execute(message, c.family.ID, flags)
	if err != nil {
		return nil, explain(err)
	}
	return answers, nil
}

// explain translates the kernel's errno into one of package capture's errors. It includes the kernel's text if there
// is any.
func explain(err error) error {
	text := err.Error()
	var op *netlink.OpError
	if errors.As(err, &op) && op.Message != "" {
		text = op.Message
	}
	for errno, meaning := range map[unix.Errno]error{
		unix.EBUSY: capture.ErrInUse, unix.EOPNOTSUPP: capture.ErrUnsupported, unix.ENOENT: capture.ErrNotFound,
		unix.ENOMEM: capture.ErrNoMemory, unix.EADDRINUSE: capture.ErrUnsupported, unix.ELOOP: capture.ErrUnsupported,
		unix.ESRCH: capture.ErrNotFound,
	} {
		if errors.Is(err, errno) {
			return fmt.Errorf("%w: %s", meaning, text)
		}
	}
	return fmt.Errorf("the module refused: %s", text)
}
