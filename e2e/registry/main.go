// SPDX-License-Identifier: Apache-2.0

// Command registry is CNCF distribution with one storage, a folder, for tests: its own program has those of all clouds
// too, which take minutes to compile.
//
//	registry FOLDER
//
// It serves on a free port of the loopback, prints HOST:PORT, and runs until its standard input ends.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem"
	"github.com/sirupsen/logrus"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: registry FOLDER")
		os.Exit(2)
	}
	if err := serve(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "registry:", err)
		os.Exit(1)
	}
}

func serve(folder string) error {
	logrus.SetLevel(logrus.WarnLevel)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handlers.NewApp(context.Background(), settings(folder)), ReadHeaderTimeout: time.Minute}
	fmt.Println(listener.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = server.Close()
	}()
	if err := server.Serve(listener); err != http.ErrServerClosed {
		return err
	}
	return nil
}

func settings(folder string) *configuration.Configuration {
	config := &configuration.Configuration{
		Storage: configuration.Storage{
			"filesystem":  {"rootdirectory": folder},
			"delete":      {"enabled": true},
			"maintenance": {"uploadpurging": map[any]any{"enabled": false}},
		},
	}
	config.Log.Level = "warn"
	return config
}
