// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
)

// exec runs a command in a pod's first container and returns what it printed. The error has that too, and what the command said besides.
func (c *Case) exec(pod *corev1.Pod, stdin string, command ...string) (string, error) {
	return c.execWithin(execTime, pod, stdin, command...)
}

// execWithin is exec for a command that may take so long. One that hangs is left behind in its pod.
func (c *Case) execWithin(limit time.Duration, pod *corev1.Pod, stdin string, command ...string) (string, error) {
	request := c.clients.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{
			Container: pod.Spec.Containers[0].Name, Command: command, Stdin: stdin != "", Stdout: true, Stderr: true,
		}, scheme.ParameterCodec)
	executor, err := remotecommand.NewWebSocketExecutor(c.config, http.MethodGet, request.URL().String())
	if err != nil {
		return "", err
	}
	var out, errs bytes.Buffer
	options := remotecommand.StreamOptions{Stdout: &out, Stderr: &errs}
	if stdin != "" {
		options.Stdin = strings.NewReader(stdin)
	}
	err = within(c.context(), limit, func(ctx context.Context) error { return executor.StreamWithContext(ctx, options) })
	if err != nil {
		return out.String(), fmt.Errorf("%s in %s/%s: %w\n%s%s", strings.Join(command, " "), pod.Namespace, pod.Name, err, &out, &errs)
	}
	return out.String(), nil
}

// in returns what a command prints that only reads in a pod. It has a minute, because the kubelet that serves it may be starting.
func (c *Case) in(pod *corev1.Pod, command ...string) (said string) {
	c.until(60, pod.Name+": "+strings.Join(command, " "), func() {
		var err error
		said, err = c.exec(pod, "", command...)
		require.NoError(c, err)
	})
	return strings.TrimSpace(said)
}

// fetch writes what a shell script prints in a pod to a file here. An exec's output may come cut off, so it has an end by which that is
// noticed.
func (c *Case) fetch(pod *corev1.Pod, script, to string) {
	const end = "all of it"
	c.until(60, pod.Name+": "+script, func() {
		data, err := c.exec(pod, "", "sh", "-c", "("+script+") && printf '"+end+"'")
		require.NoError(c, err)
		require.True(c, strings.HasSuffix(data, end), "%d bytes came, without the end", len(data))
		c.write(to, strings.TrimSuffix(data, end))
	})
}

// allOfIt is where a capture's packets begin.
const allOfIt = "24"

// copyCaptures writes what is in a pod's volumes to a file here, as one capture: of the files like a pattern, each from a byte on. The
// node copies it: what a virtual machine without KVM sends through an exec takes minutes.
func (c *Case) copyCaptures(pod *corev1.Pod, files, from, to string) {
	c.run("e2e/cluster/node-captures", pod.Spec.NodeName, string(pod.UID), files, from, to)
}

// copyCapture is copyCaptures of all of one file.
func (c *Case) copyCapture(pod *corev1.Pod, name, to string) { c.copyCaptures(pod, name, allOfIt, to) }

// captured is how many packets of a capture a filter takes. A file that is not there or not whole, and a filter that is none, fail the
// case: they are not "no packets".
func (c *Case) captured(file string, filter ...string) int {
	said, err := c.pipe("", append([]string{"tcpdump", "-r", file, "--count"}, filter...)...)
	require.NoError(c, err)
	count, _, _ := strings.Cut(said, " ")
	return c.number(count)
}

// packets fails the case unless the file has so many.
func (c *Case) packets(want int, file string, filter ...string) {
	require.Equal(c, want, c.captured(file, filter...), "packets in %s: %v", filepath.Base(file), filter)
}

// ringcap runs the command line, and returns all that it said, and its exit status.
func (c *Case) ringcap(words ...string) (string, int) {
	var said []byte
	err := within(c.context(), answerTime, func(ctx context.Context) (err error) {
		said, err = c.command(ctx, append([]string{"ringcap"}, words...)...).CombinedOutput()
		return err
	})
	status := 0
	if err != nil {
		var exit *exec.ExitError
		require.True(c, errors.As(err, &exit) && exit.Exited(), "ringcap %s: %v\n%s", strings.Join(words, " "), err, said)
		status = exit.ExitCode()
	}
	c.Logf("ringcap %s: status %d\n%s", strings.Join(words, " "), status, said)
	return string(said), status
}

// capture starts `ringcap WORDS...`, and returns when it captures on all its nodes: a virtual machine without KVM takes its time over a
// pod. What it returns is Ctrl-C, which also ends the capture of a case that fails, and says what ringcap has said.
func (c *Case) capture(words ...string) (stop func() string) {
	log, err := os.Create(c.file("capture.log"))
	require.NoError(c, err)
	defer log.Close()
	said := func() string { return c.read(log.Name()) }
	cmd := c.command(c.ctx, append(append([]string{"ringcap"}, words...), "--timeout", "4m")...)
	cmd.Stderr, cmd.WaitDelay = log, time.Minute
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	require.NoError(c, cmd.Start())
	c.Cleanup(func() { _ = cmd.Wait() })
	c.until(240, "ringcap captures", func() { require.Contains(c, said(), "capturing on") })
	return func() string {
		require.NoError(c, cmd.Cancel())
		hangs := time.AfterFunc(answerTime, func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		c.Logf("%s\n%s", cmd, said())
		require.True(c, hangs.Stop(), "%s hung: it did not end within %s of Ctrl-C", cmd, answerTime)
		require.NoError(c, err)
		return said()
	}
}

// ringcapLeftNothing: of captures by the command line.
func (c *Case) ringcapLeftNothing() {
	require.Empty(c, c.run("kubectl", "get", "capturerings,clusters.ringcap.io,pods", "-A", "-l", "ringcap.io/temporary-capture", "-o", "name"))
}
