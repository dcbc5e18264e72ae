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

// Dial starts rcstream on the node at a place of the plan. Its output goes to out and its complaints to errOut until ctx
// is done or it ends; it stops capturing when in gives a line, and ends when in does.
type Dial func(ctx context.Context, node int, in io.Reader, out, errOut io.Writer) error

// Result is how it went on one node.
type Result struct {
	Node string `json:"node"`
	// Packets in the file. Truncated of them are shorter there than on the wire, the longest of these has TruncatedTo bytes.
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
	// patience with nodes that have no traffic.
	patience = time.Second
	// most bytes that are held back for the sake of order.
	most = 64 << 20
	// closing is the time for nodes to send what they have when it is enough.
	closing = 20 * time.Second
	tick    = 100 * time.Millisecond
)

// errEarly is of a stream whose account came though nobody had asked for it.
var errEarly = errors.New("rcstream ended by itself, as if its standard input had been closed: what came later is not in the file")

// event is what a node's stream tells the writer.
type event struct {
	node       int
	packet     *Packet
	interfaces []iface
	// listening: the queue is attached. ended: nothing more will come, because of err or, if that is nil, as asked.
	listening, ended bool
	account          Account
	err              error
}

// run is one capture under way.
type run struct {
	plan   Plan
	dial   Dial
	events chan event
	file   *file
	merger *merger
	// results and open streams, which the writer's goroutine keeps.
	results []Result
	open    int
	// starting nodes neither capture yet nor have failed.
	starting map[int]bool
}

// Stream captures until stop is done, or all nodes have failed; every node has an account then or says why not. ready is
// called when all nodes capture but those that have failed. disordered packets were too late for their place in the file.
// An error is the writer's: the file is not complete.
func Stream(stop context.Context, plan Plan, dial Dial, to io.Writer, ready func()) (results []Result, disordered int64, err error) {
	r := &run{
		plan: plan, dial: dial, events: make(chan event, 256), file: newFile(to, plan), merger: newMerger(len(plan.Nodes), patience, most),
		results: make([]Result, len(plan.Nodes)), open: len(plan.Nodes), starting: map[int]bool{},
	}
	// Streams live on after stop, until they have sent their account.
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
	// Whoever still wants to tell something is let go.
	go func() {
		streams.Wait()
		close(r.events)
	}()
	for range r.events { //nolint:revive // drained
	}
	return r.results, r.merger.disordered, err
}

// write takes events until all streams have ended.
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

// pass writes what need not wait any longer.
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

// stream runs rcstream on a node and tells what it says.
func (r *run) stream(ctx, stop context.Context, node int) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in, enough := io.Pipe()
	out, output := io.Pipe()
	said := &limited{most: 4096}
	done := make(chan error, 1)
	go func() {
		err := r.dial(ctx, node, in, output, said)
		output.CloseWithError(io.EOF)
		in.CloseWithError(io.ErrClosedPipe)
		done <- err
	}()
	release := context.AfterFunc(stop, func() {
		// Nobody may read it any more: then this fails, or waits for in to be closed.
		go func() { _, _ = enough.Write([]byte("\n")) }()
		time.AfterFunc(closing, cancel)
	})
	account, err := r.read(ctx, node, out)
	if err == nil && stop.Err() == nil {
		err = errEarly
	}
	release()
	// It has sent all: it may end, and need not say goodbye.
	enough.Close()
	out.CloseWithError(io.ErrClosedPipe)
	cancel()
	if dialled := <-done; err != nil {
		err = explain(err, dialled, said.String())
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

// explain prefers what rcstream itself said.
func explain(err, dialled error, said string) error {
	said = strings.TrimPrefix(strings.TrimSpace(said), "rcstream: ")
	switch {
	case said != "":
		return errors.New(said)
	case dialled != nil && !errors.Is(dialled, context.Canceled):
		return dialled
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return errors.New("the connection ended before the account came")
	}
	return err
}

// limited keeps the first bytes of what is written, and forgets the rest.
type limited struct {
	mu   sync.Mutex
	text strings.Builder
	most int
}

func (l *limited) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p[:min(len(p), l.most-l.text.Len())])
	return len(p), nil
}

func (l *limited) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
