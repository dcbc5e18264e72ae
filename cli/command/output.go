// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// output is the value of -o.
type output string

func (o *output) String() string { return string(*o) }

// Type implements pflag.Value.
func (o *output) Type() string { return "format" }

func (o *output) Set(value string) error {
	switch value {
	case "text", "json", "yaml":
		*o = output(value)
		return nil
	}
	return fmt.Errorf("%q is not one of text, json, yaml", value)
}

func outputFlag(cmd *cobra.Command) *output {
	o := output("text")
	cmd.Flags().VarP(&o, "output", "o", "text, json or yaml")
	complete := cobra.FixedCompletions([]string{"text", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("output", complete); err != nil {
		panic(err) // the flag was made two lines above
	}
	return &o
}

// write prints a value, or its text.
func (o output) write(w io.Writer, value any, text func(io.Writer) error) error {
	switch o {
	case "json":
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
	case "yaml":
		encoded, err := yaml.Marshal(value)
		if err != nil {
			return err
		}
		_, err = w.Write(encoded)
		return err
	}
	return text(w)
}
