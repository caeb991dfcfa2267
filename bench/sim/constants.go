package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/gopgas/gopgas/collectives/loggp"
)

// Constants are those of a machine: how ranks of one host and of two hosts reach each other.
type constants struct {
	Within         loggp.Link `json:"within"`
	Among          loggp.Link `json:"among"`
	CombinePerByte float64    `json:"combinePerByte"` // nanoseconds
	PerCall        float64    `json:"perCall"`        // nanoseconds
}

// readConstants reads the constants that an earlier run saved.
func readConstants(path string) (*constants, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w; write one with -save, or leave -constants out to measure", err)
	}
	c := &constants{}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(c); err != nil {
		return nil, fmt.Errorf("%s: %w; -save writes a file of constants", path, err)
	}
	return c, nil
}

// write saves the constants for -constants of a later run.
func (c *constants) write(path string) error {
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

// machine returns the machine of so many ranks.
func (c *constants) machine(ranks, perHost int) *loggp.Machine {
	m := &loggp.Machine{Ranks: ranks, PerHost: min(perHost, ranks), Within: c.Within, Among: c.Among, CombinePerByte: c.CombinePerByte, PerCall: c.PerCall}
	m.Part = func(collective string, bytes int, among bool) string { return partOf(m, collective, bytes, among) }
	return m
}

// print writes the constants as a table, by their names in the LogGP model.
func (c *constants) print(out io.Writer) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "constants\tL\to send\to receive\tg\tns\tO send\tO receive\tG\tns/byte\tS\tbytes\t")
	for _, row := range []struct {
		name string
		l    *loggp.Link
	}{{"within a host", &c.Within}, {"between hosts", &c.Among}} {
		l := row.l
		fmt.Fprintf(table, "%s\t%.0f\t%.0f\t%.0f\t%.0f\t\t%.3f\t%.3f\t%.3f\t\t%d\t\t\n",
			row.name, l.Latency, l.Send, l.Receive, l.Gap, l.SendPerByte, l.ReceivePerByte, l.PerByte, l.Rendezvous)
	}
	table.Flush() //nolint:errcheck // there is no other place to report it
	fmt.Fprintf(out, "combining %.3f ns/byte, each call %.0f ns beside its messages\n", c.CombinePerByte, c.PerCall)
}
