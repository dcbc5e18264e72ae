// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// Dial starts rcstream on the plan's node with this index. Its output goes to out and its errors to errOut until ctx is done or
// it ends. It stops capturing when in returns a line, and ends when in does.
type Dial func(ctx context.Context, node int, in io.Reader, out, errOut io.Writer) error

// Result is the result of one node.
type Result struct {
	Node string `json:"node"`
	// Packets in the file. Truncated of them are shorter than on the wire; the longest of these has TruncatedTo bytes.
	Packets     int64 `json:"packets"`
	Truncated   int64 `json:"truncated"`
	TruncatedTo int   `json:"truncatedTo"`
	Account
	// Err is why it ended early, nil if it did not.
	Err error `json:"-"`
}

func (r *Result) count(p *Packet) {
	r.Packets++
	if len(p.Data) < p.Length {
		r.Truncated++
		r.TruncatedTo = max(r.TruncatedTo, len(p.Data))
	}
}

const (
	// maxWait is how long packets are held back for nodes without traffic.
	maxWait = time.Second
	// maxHeld is the maximum number of bytes that are held back to sort packets.
	maxHeld = 64 << 20
	// closing is the time that nodes have to send the rest after the stop.
	closing = 20 * time.Second
	tick    = 100 * time.Millisecond
)

// errEarly is the error of a stream that ended before it was asked to.
var errEarly = errors.New("rcstream ended by itself, as if its standard input had been closed: what came later is not in the file")

// event is a message of a node's stream to the writer.
type event struct {
	node       int
	packet     *Packet
	interfaces []iface
	// listening means that the queue is attached. ended means that the stream is over, because of err or, if that is
	// nil, as asked.
	listening, ended bool
	account          Account
	err              error
}

// run is one capture in progress.
type run struct {
	plan   Plan
	dial   Dial
	events chan event
	file   *file
	merger *merger
	// results and the number of open streams; only the writer's goroutine uses them.
	results []Result
	open    int
	// starting nodes have neither begun to capture nor failed.
	starting map[int]bool
}

// Stream captures until stop is done or all nodes have failed. Then each result has the node's account or its error. ready is
// called when all nodes capture, except for those that have failed. disordered is the number of packets that were too late for
// their position in the file. An error is the writer's: the file is incomplete then.
func Stream(stop context.Context, plan Plan, dial Dial, to io.Writer, ready func()) (results []Result, disordered int64, err error) {
	r := &run{
		plan: plan, dial: dial, events: make(chan event, 256), file: newFile(to, plan), merger: newMerger(len(plan.Nodes), maxWait, maxHeld),
		results: make([]Result, len(plan.Nodes)), open: len(plan.Nodes), starting: map[int]bool{},
	}
	// Streams continue after stop until they have sent their account.
	ctx, cancel := context.WithCancel(context.WithoutCancel(stop))
	var streams sync.WaitGroup
	for i, node := range plan.Nodes {
		r.results[i].Node, r.starting[i] = node.Name, true
	}
	for i := range plan.Nodes {
		streams.Go(func() { r.stream(ctx, stop, i) })
	}
	err = r.write(stop, ready)
	cancel()
	// Let streams that still send an event end.
	go func() {
		streams.Wait()
		close(r.events)
	}()
	for range r.events { //nolint:revive // drained
	}
	return r.results, r.merger.disordered, err
}

// write handles events until all streams have ended.
func (r *run) write(stop context.Context, ready func()) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for r.open > 0 {
		select {
		case e := <-r.events:
			if err := r.take(e, ready); err != nil {
				return err
			}
		case <-ticker.C:
		}
		if err := r.pass(len(r.events) == 0); err != nil {
			return err
		}
	}
	if err := r.pass(true); err != nil {
		return err
	}
	if err := r.file.finish(r.results, time.Now()); err != nil {
		return fmt.Errorf("write the capture: %w", err)
	}
	return nil
}

func (r *run) take(e event, ready func()) error {
	if e.interfaces != nil {
		if err := r.file.announce(e.node, e.interfaces); err != nil {
			return fmt.Errorf("write the capture: %w", err)
		}
	}
	if r.starting[e.node] && (e.listening || e.ended) {
		delete(r.starting, e.node)
		if len(r.starting) == 0 && (e.listening || r.open > 1) {
			ready()
		}
	}
	if e.packet != nil {
		r.results[e.node].count(e.packet)
		r.merger.add(e.node, *e.packet, time.Now())
	}
	if e.ended {
		r.open--
		r.merger.end(e.node)
		r.results[e.node].Account, r.results[e.node].Err = e.account, e.err
	}
	return nil
}

// pass writes the packets that need not wait any longer.
func (r *run) pass(flush bool) error {
	now := time.Now()
	for {
		node, p, ok := r.merger.take(now)
		if !ok {
			break
		}
		if err := r.file.write(node, p); err != nil {
			return fmt.Errorf("write the capture: %w", err)
		}
	}
	if flush {
		if err := r.file.flush(); err != nil {
			return fmt.Errorf("write the capture: %w", err)
		}
	}
	return nil
}

// stream runs rcstream on a node and sends its output as events.
func (r *run) stream(ctx, stop context.Context, node int) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in, enough := io.Pipe()
	out, output := io.Pipe()
	stderr := &limited{limit: 4096}
	done := make(chan error, 1)
	go func() {
		err := r.dial(ctx, node, in, output, stderr)
		output.CloseWithError(io.EOF)
		in.CloseWithError(io.ErrClosedPipe)
		done <- err
	}()
	release := context.AfterFunc(stop, func() {
		// If nobody reads it any more, this fails, or waits until in is closed.
		go func() { _, _ = enough.Write([]byte("\n")) }()
		time.AfterFunc(closing, cancel)
	})
	account, err := r.read(ctx, node, out)
	if err == nil && stop.Err() == nil {
		err = errEarly
	}
	release()
	// It has sent everything: it may be killed.
	enough.Close()
	out.CloseWithError(io.ErrClosedPipe)
	cancel()
	if dialled := <-done; err != nil {
		err = explain(err, dialled, stderr.String())
	}
	r.events <- event{node: node, ended: true, account: account, err: err}
}

func (r *run) read(ctx context.Context, node int, out io.Reader) (Account, error) {
	s, err := openStream(out)
	if err != nil {
		return Account{}, err
	}
	r.events <- event{node: node, listening: true}
	announced := 0
	for {
		p, err := s.next()
		if errors.Is(err, io.EOF) {
			return s.account, nil
		}
		if err != nil {
			return s.account, err
		}
		e := event{node: node, packet: &p}
		if len(s.interfaces) > announced {
			announced = len(s.interfaces)
			e.interfaces = append([]iface(nil), s.interfaces...)
		}
		select {
		case r.events <- e:
		case <-ctx.Done():
			return s.account, context.Cause(ctx)
		}
	}
}

// explain prefers rcstream's own error.
func explain(err, dialled error, stderr string) error {
	stderr = strings.TrimPrefix(strings.TrimSpace(stderr), "rcstream: ")
	switch {
	case stderr != "":
		return errors.New(stderr)
	case dialled != nil && !errors.Is(dialled, context.Canceled):
		return dialled
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return errors.New("the connection ended before the account came")
	}
	return err
}

// limited keeps the first bytes of what is written, and drops the rest.
type limited struct {
	mu    sync.Mutex
	text  strings.Builder
	limit int
}

func (l *limited) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p[:min(len(p), l.limit-l.text.Len())])
	return len(p), nil
}

func (l *limited) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
