// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// explain turns the kernel's errno into a reason and advice.
func (l Loader) explain(path, words string, err error) Outcome {
	reason, what := l.reason(path, err)
	if words != "" {
		what += " Kernel log: " + words + "."
	}
	return l.outcome(reason, "%s (%v) The eBPF engine serves meanwhile.", what, err)
}

func (l Loader) reason(path string, err error) (reason, what string) {
	switch {
	case errors.Is(err, unix.ENOEXEC):
		return v1.ReasonInvalidModuleFormat, l.misfit(path)
	case errors.Is(err, unix.EKEYREJECTED), errors.Is(err, unix.ENOKEY), errors.Is(err, unix.EBADMSG):
		return v1.ReasonKeyRejected, l.wantsKey(path)
	case errors.Is(err, unix.EPERM) && l.lockedDown():
		return v1.ReasonLockdown, l.wantsSignature(path)
	case errors.Is(err, unix.EPERM):
		return v1.ReasonLoadFailed, fmt.Sprintf("loading %s is not permitted: the loader needs CAP_SYS_MODULE, and the kernel kernel.modules_disabled=0.", path)
	case errors.Is(err, unix.ENOENT):
		return v1.ReasonSymbolMissing, l.lacks(path)
	case errors.Is(err, unix.ENOSYS):
		return v1.ReasonModulesUnsupported, fmt.Sprintf("kernel %s was built without support for modules.", l.Identity.KernelRelease)
	default:
		return v1.ReasonLoadFailed, fmt.Sprintf("loading %s failed: see the kernel's log on the node.", path)
	}
}

func (l Loader) wantsKey(path string) string {
	return fmt.Sprintf("kernel %s wants modules signed with a key that it trusts, and %s is %s: "+
		"enrol the key's certificate on the node (mokutil --import), and sign with it.", l.Identity.KernelRelease, path, l.signed(path))
}

func (l Loader) wantsSignature(path string) string {
	return fmt.Sprintf("the kernel is locked down (%s) and takes no module that is not signed with a key that it trusts; %s is %s: "+
		"enrol a key's certificate on the node (mokutil --import) and sign with it, or boot without lockdown.", l.Kernel.Lockdown(), path, l.signed(path))
}

func (l Loader) lacks(path string) string {
	return fmt.Sprintf("kernel %s lacks %s, which %s needs: build the module for this very kernel.", l.Identity.KernelRelease, l.missing(path), path)
}

// misfit returns what is wrong with a module's format.
func (l Loader) misfit(path string) string {
	file, err := ReadFile(path)
	switch {
	case err != nil:
		return fmt.Sprintf("%v: build the image again with a module for kernel %s.", err, l.Identity.KernelRelease)
	case file.Release != l.Identity.KernelRelease:
		return fmt.Sprintf("%s was built for kernel %s, this is %s: build it with the headers of this one.", path, file.Release, l.Identity.KernelRelease)
	default:
		return fmt.Sprintf("%s was built for a kernel of this name, %s, that was configured otherwise: build it with this one's own headers.",
			path, file.Release)
	}
}

func (l Loader) signed(path string) string {
	file, err := ReadFile(path)
	switch {
	case l.Signer != nil:
		return fmt.Sprintf("signed with the key of %s, which it does not trust", l.Signer.certificate.Subject)
	case err == nil && file.Signed:
		return "signed with another"
	}
	return "not signed"
}

// missing names the symbols that a module needs and the kernel does not have.
func (l Loader) missing(path string) string {
	file, err := ReadFile(path)
	if err != nil {
		return "a symbol"
	}
	const limit = 8
	names := l.Kernel.Missing(file.Undefined)
	switch {
	case len(names) == 0:
		return "a symbol"
	case len(names) > limit:
		return fmt.Sprintf("%s and %d more symbols", strings.Join(names[:limit], ", "), len(names)-limit)
	}
	return strings.Join(names, ", ")
}
