// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// Some tests need a separate process: one to kill, or one of another user. It is this test program; these variables
// tell it what to do.
const (
	helperRole  = "RINGCAP_TEST_ROLE"
	helperInput = "RINGCAP_TEST_INPUT"
)

var helpers = map[string]func(input string) error{
	"engine":   runEngine,
	"dying":    runDyingEngine,
	"nobtf":    runEngineWithoutBTF,
	"consumer": runConsumer,
	// A container with a user namespace of its own.
	"contained": runConsumer,
	"intruder":  runIntruder,
	"new":       runNew,
	"parent":    runParent,
}

func TestMain(m *testing.M) {
	role := os.Getenv(helperRole)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := helpers[role](os.Getenv(helperInput)); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// nobody is a user without any right.
const nobody = 65534

// helper starts this program in a role, as a user with capabilities. It is killed at the latest at the end of the
// test.
func (l *lab) helper(role string, input any, user uint32, capabilities ...uintptr) (*exec.Cmd, *bufio.Scanner) {
	l.t.Helper()
	text, err := json.Marshal(input)
	require.NoError(l.t, err)
	// The test program's own file is in a folder that only its owner may enter.
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), helperRole+"="+role, helperInput+"="+string(text))
	cmd.Stderr = os.Stderr
	if role == "nobtf" {
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	}
	if user != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Credential: &syscall.Credential{Uid: user, Gid: user}, AmbientCaps: capabilities,
		}
	}
	if role == "contained" {
		ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 200000, Size: 65536}}
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: ids, GidMappings: ids}
	}
	out, err := cmd.StdoutPipe()
	require.NoError(l.t, err)
	require.NoError(l.t, cmd.Start())
	l.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, bufio.NewScanner(out)
}

// line returns the next line that a helper prints.
func (l *lab) line(from *bufio.Scanner) string {
	l.t.Helper()
	require.True(l.t, from.Scan(), "the helper process ended early: %v", from.Err())
	return from.Text()
}

type engineInput struct {
	PinDir, RunDir string
	WithoutTCX     bool
	Plan           capture.Plan
	// Next is the plan in which a dying engine is killed.
	Next capture.Plan
	// Cgroup is a file; a process writes to it to join the cgroup.
	Cgroup string
}

// runEngine runs an engine until it is killed.
func runEngine(text string) error {
	var input engineInput
	if err := json.Unmarshal([]byte(text), &input); err != nil {
		return err
	}
	if input.Cgroup != "" {
		if err := os.WriteFile(input.Cgroup, []byte("0"), 0); err != nil {
			return err
		}
	}
	e, err := New(Options{PinDir: input.PinDir, RunDir: input.RunDir, withoutTCX: input.WithoutTCX})
	if err != nil {
		return err
	}
	failed, err := e.Apply(context.Background(), input.Plan, capture.Observation{})
	if err != nil || len(failed) > 0 {
		return fmt.Errorf("%v %v", err, strings.ReplaceAll(fmt.Sprint(failed), "\n", " "))
	}
	fmt.Println("ready")
	return waitForKill()
}

// dyingAttacher kills the process as soon as it has attached a program.
type dyingAttacher struct{ attacher }

func (a dyingAttacher) attach(r *ring, point tapPoint, program *ebpf.Program) (tap, error) {
	t, err := a.attacher.attach(r, point, program)
	if err == nil {
		err = unix.Kill(os.Getpid(), unix.SIGKILL)
	}
	return t, err
}

// runDyingEngine runs an engine that cannot open its queue's maps any more, and is killed when it has attached a program
// to another tap.
func runDyingEngine(text string) error {
	var input engineInput
	if err := json.Unmarshal([]byte(text), &input); err != nil {
		return err
	}
	e, err := New(Options{PinDir: input.PinDir, RunDir: input.RunDir, withoutTCX: input.WithoutTCX})
	if err != nil {
		return err
	}
	failed, err := e.Apply(context.Background(), input.Plan, capture.Observation{})
	if err != nil || len(failed) > 0 {
		return fmt.Errorf("%w %v", err, failed)
	}
	e.clusters["mirror"].queues[0].area.ids[1] = math.MaxUint32
	e.env.attacher.tc = dyingAttacher{e.env.attacher.tc}
	failed, err = e.Apply(context.Background(), input.Next, capture.Observation{})
	return fmt.Errorf("it was not killed: %w %v", err, failed)
}

// runEngineWithoutBTF does the same as runEngine, but the kernel's type information cannot be found.
func runEngineWithoutBTF(text string) error {
	const btf = "/sys/kernel/btf"
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := unix.Mount("none", btf, "tmpfs", 0, ""); err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	if _, err := os.Stat(btf + "/vmlinux"); !os.IsNotExist(err) {
		return fmt.Errorf("it is still there: %w", err)
	}
	return runEngine(text)
}

// waitForKill never returns.
func waitForKill() error {
	for {
		if err := unix.Pause(); err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// runNew opens an engine and closes it.
func runNew(text string) error {
	var input engineInput
	if err := json.Unmarshal([]byte(text), &input); err != nil {
		return err
	}
	e, err := New(Options{PinDir: input.PinDir, RunDir: input.RunDir})
	if err != nil {
		return err
	}
	return e.Close()
}

type consumerInput struct {
	RunDir, Name string
	Packets      int
}

// runConsumer attaches, reads the given number of packets, reports that, and holds the queue until it is killed.
func runConsumer(text string) error {
	var input consumerInput
	if err := json.Unmarshal([]byte(text), &input); err != nil {
		return err
	}
	c, err := consume(input.RunDir, input.Name, 0)
	if err != nil {
		return err
	}
	fmt.Println("attached")
	if _, err := c.collect(input.Packets); err != nil {
		return err
	}
	fmt.Println("read")
	return waitForKill()
}

// runParent requests a queue, and leaves the answer to a child, which prints it.
func runParent(text string) error {
	var input consumerInput
	if err := json.Unmarshal([]byte(text), &input); err != nil {
		return err
	}
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: socketPath(input.RunDir, input.Name, 0), Net: "unixpacket"})
	if err != nil {
		return err
	}
	file, err := conn.File()
	if err != nil {
		return err
	}
	child := exec.Command("dd", "bs=4096", "count=1", "status=none")
	child.Stdin, child.Stdout, child.Stderr = file, os.Stdout, os.Stderr
	if err := child.Start(); err != nil {
		return err
	}
	if _, err := conn.Write(encodeRequest(handoverRequest{Magic: protocolMagic, ABI: protocolABI})); err != nil {
		return err
	}
	return waitForKill()
}
