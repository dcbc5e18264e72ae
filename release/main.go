// SPDX-License-Identifier: Apache-2.0

// Command release makes a release's images and chart of what release/build built, and brings them to a registry.
//
//	release make --chart FOLDER --images FOLDER --out FOLDER --revision COMMIT --time SECONDS IMAGE...
//	release push [--key FILE] [--force] FOLDER REGISTRY
//	release verify [--platform OS/ARCHITECTURE] FOLDER REGISTRY
//	release sign --key FILE FILE
//
// A REGISTRY is HOST[:PORT][/PATH]. Credentials are those of `docker login`.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

var commands = map[string]func(ctx context.Context, args []string) error{
	"make": makeCommand, "push": pushCommand, "verify": verifyCommand, "sign": signCommand,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: release make|push|verify|sign ...")
		os.Exit(2)
	}
	if err := commands[os.Args[1]](ctx, os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// parse parses flags, and returns the arguments that follow, of which there must be at least n.
func parse(flags *flag.FlagSet, args []string, n int) ([]string, error) {
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() < n {
		return nil, fmt.Errorf("%s: %d arguments are needed, there are %d", flags.Name(), n, flags.NArg())
	}
	return flags.Args(), nil
}

func makeCommand(_ context.Context, args []string) error {
	flags := flag.NewFlagSet("make", flag.ContinueOnError)
	var r recipe
	flags.StringVar(&r.chart, "chart", "charts/ringcap", "folder of the chart")
	flags.StringVar(&r.archives, "images", "", "`folder` with ARCHITECTURE/IMAGE.tar")
	flags.StringVar(&r.out, "out", "out/release", "`folder` to write")
	flags.StringVar(&r.revision, "revision", "", "commit that the release is of")
	seconds := flags.Int64("time", 0, "time of the commit, seconds since 1970")
	names, err := parse(flags, args, 1)
	if err != nil {
		return err
	}
	r.time = time.Unix(*seconds, 0).UTC()
	return r.make(names)
}

func pushCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("push", flag.ContinueOnError)
	key := flags.String("key", "", "private key in PEM, cosign's own format too, whose password is in COSIGN_PASSWORD")
	force := flags.Bool("force", false, "replace what another release has pushed under the same version")
	rest, err := parse(flags, args, 2)
	if err != nil {
		return err
	}
	target, err := open(ctx, rest[0], rest[1])
	if err != nil {
		return err
	}
	target.force = *force
	if *key != "" {
		if target.key, err = loadKey(*key); err != nil {
			return err
		}
	}
	return target.push()
}

func verifyCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("verify", flag.ContinueOnError)
	platform := flags.String("platform", "", "what each image must run on, OS/ARCHITECTURE")
	rest, err := parse(flags, args, 2)
	if err != nil {
		return err
	}
	target, err := open(ctx, rest[0], rest[1])
	if err != nil {
		return err
	}
	return target.verify(*platform)
}

// signCommand writes FILE.sig, as `cosign sign-blob` does.
func signCommand(_ context.Context, args []string) error {
	flags := flag.NewFlagSet("sign", flag.ContinueOnError)
	path := flags.String("key", "", "private key in PEM, cosign's own format too")
	rest, err := parse(flags, args, 1)
	if err != nil {
		return err
	}
	if *path == "" {
		return errors.New("sign: --key is needed")
	}
	key, err := loadKey(*path)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(rest[0])
	if err != nil {
		return err
	}
	signature, err := sign(key, text)
	if err != nil {
		return err
	}
	return os.WriteFile(rest[0]+".sig", []byte(signature+"\n"), 0o644)
}
