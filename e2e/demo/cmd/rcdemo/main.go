// SPDX-License-Identifier: Apache-2.0

// Command rcdemo is the demo's arithmetic:
//
//	rcdemo trace --out FILE --at-least N FOLDER     makes one capture of those in a folder
//	rcdemo report --dir FOLDER [--lossless]         prints what became of each packet; fails when one is unaccounted for
//	rcdemo nodecaptures                             prints NodeCaptures with the agents' present counters
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/ringcap/ringcap/e2e/demo/account"
	"github.com/ringcap/ringcap/e2e/demo/trace"
)

// errUnaccounted is told by what was printed already.
var errUnaccounted = errors.New("packets are unaccounted for")

func main() {
	commands := map[string]func([]string) error{"trace": makeTrace, "report": report, "nodecaptures": nodeCaptures}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: rcdemo trace --out FILE [--at-least N] FOLDER | report --dir FOLDER [--lossless] | nodecaptures")
		os.Exit(2)
	}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		if !errors.Is(err, errUnaccounted) {
			fmt.Fprintf(os.Stderr, "rcdemo %s: %v\n", os.Args[1], err)
		}
		os.Exit(1)
	}
}

func makeTrace(args []string) error {
	flags := flag.NewFlagSet("trace", flag.ExitOnError)
	out := flags.String("out", "", "file to write")
	atLeast := flags.Int("at-least", 100_000, "packets")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 || *out == "" {
		return errors.New("needs --out FILE and a folder of captures")
	}
	frames, stats, err := trace.Collect(flags.Arg(0))
	if err != nil {
		return err
	}
	written, err := writeTrace(*out, frames, *atLeast)
	if err != nil {
		return err
	}
	fmt.Printf("%d packets: %d frames of %d captures, %d times over\n", written, stats.Frames, stats.Files, written/stats.Frames)
	return nil
}

func writeTrace(path string, frames []trace.Frame, atLeast int) (int, error) {
	file, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	buffer := bufio.NewWriterSize(file, 1<<20)
	written, err := trace.Write(buffer, frames, atLeast)
	if err == nil {
		err = buffer.Flush()
	}
	return written, errors.Join(err, file.Close())
}

func report(args []string) error {
	run := account.Run{Ring: "mirror", Cluster: "ids"}
	var options account.Options
	flags := flag.NewFlagSet("report", flag.ExitOnError)
	flags.StringVar(&run.Folder, "dir", "", "folder of the run")
	flags.BoolVar(&options.Lossless, "lossless", false, "nothing may be lost or filtered")
	out := flags.String("json", "", "file to write the summary to")
	if err := flags.Parse(args); err != nil {
		return err
	}
	summary, err := account.Summarize(run, options)
	if err != nil {
		return err
	}
	if err := summary.Print(os.Stdout); err != nil {
		return err
	}
	if *out != "" {
		text, err := json.MarshalIndent(summary, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(*out, append(text, '\n'), 0o644); err != nil {
			return err
		}
	}
	if !summary.AddsUp {
		return errUnaccounted
	}
	return nil
}
