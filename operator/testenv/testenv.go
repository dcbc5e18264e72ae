// SPDX-License-Identifier: Apache-2.0

// Package testenv gives tests a real kube-apiserver and etcd with ringcap's CRDs.
package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Env is one API server, shared by the tests of a package.
type Env struct {
	// Bare leaves the CRDs out.
	Bare bool

	once sync.Once
	env  envtest.Environment
	skip string
	err  error
}

// Root is the top of the source tree.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}

// Run runs a package's tests and stops the API server after them; call it from TestMain.
func (e *Env) Run(m interface{ Run() int }) int {
	defer func() {
		if e.env.Config != nil {
			if err := e.env.Stop(); err != nil {
				fmt.Fprintln(os.Stderr, "stopping the API server:", err)
			}
		}
	}()
	return m.Run()
}

// Config starts the API server when that was not done yet, and returns how to reach it as an administrator. It skips
// the test, with the reason, where the binaries are not there.
func (e *Env) Config(t *testing.T) *rest.Config {
	t.Helper()
	e.once.Do(e.start)
	if e.skip != "" {
		t.Skip(e.skip)
	}
	if e.err != nil {
		t.Fatalf("starting the API server: %v", e.err)
	}
	return e.env.Config
}

// Client is an uncached client of an administrator, for all of ringcap's and Kubernetes' kinds.
func (e *Env) Client(t *testing.T) client.Client {
	t.Helper()
	c, err := client.New(e.Config(t), client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Kubeconfig writes a file by which programs reach the API server as an administrator.
func (e *Env) Kubeconfig(t *testing.T) string {
	t.Helper()
	e.Config(t)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, e.env.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// NewUser makes a user and returns how to reach the API server as that user.
func (e *Env) NewUser(t *testing.T, name string, groups ...string) *rest.Config {
	t.Helper()
	e.Config(t)
	user, err := e.env.AddUser(envtest.User{Name: name, Groups: groups}, rest.CopyConfig(e.env.Config))
	if err != nil {
		t.Fatal(err)
	}
	return user.Config()
}

func (e *Env) start() {
	assets, err := binaries()
	if err != nil {
		e.skip = err.Error()
		return
	}
	if e.err = v1alpha1.AddToScheme(scheme.Scheme); e.err != nil {
		return
	}
	e.env.BinaryAssetsDirectory = assets
	// In CI kernels are compiled meanwhile.
	e.env.ControlPlaneStartTimeout, e.env.ControlPlaneStopTimeout = 3*time.Minute, time.Minute
	if !e.Bare {
		e.env.CRDDirectoryPaths = []string{filepath.Join(Root(), "config", "crd")}
		e.env.ErrorIfCRDPathMissing = true
	}
	_, e.err = e.env.Start()
}

// binaries finds the folder of kube-apiserver and etcd.
func binaries() (string, error) {
	file, err := Binary("kube-apiserver")
	return filepath.Dir(file), err
}

// Binary finds a program of the test cluster's: in the folder that KUBEBUILDER_ASSETS names, else in the newest that
// e2e/cluster/build put into the cache, else in the path.
func Binary(name string) (string, error) {
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" {
		return exec.LookPath(filepath.Join(dir, name))
	}
	cache := os.Getenv("RINGCAP_CACHE")
	if cache == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("no cache folder: %w", err)
		}
		cache = filepath.Join(base, "ringcap")
	}
	found, err := filepath.Glob(filepath.Join(cache, "k8s", "*", "bin", name))
	if err != nil {
		return "", fmt.Errorf("looking into %s: %w", cache, err)
	}
	newest, program := int64(0), ""
	for _, file := range found {
		info, err := os.Stat(file)
		if err == nil && info.ModTime().UnixNano() > newest {
			newest, program = info.ModTime().UnixNano(), file
		}
	}
	if program != "" {
		return program, nil
	}
	if program, err = exec.LookPath(name); err != nil {
		return "", fmt.Errorf("needs %s: set KUBEBUILDER_ASSETS to its folder, or run e2e/cluster/build", name)
	}
	return program, nil
}
