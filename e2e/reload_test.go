//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/loopback"
)

// A program that gets a configuration with which it cannot run, as its address is taken, goes on with the one
// before, at the address of that one. The audit has it as refused. When the address is free, the next SIGHUP
// brings the configuration into force. The process stays the same.
func TestReloadGoesBack(t *testing.T) {
	b, _ := startServer(t, 2)
	dir := prepare(t, b.Addr(), 1)
	at := func(name string) string { return filepath.Join(dir, name) }
	conf := fmt.Sprintf("kafka: {brokers: [%q]}\n", b.Addr())
	write(t, dir, "list.yaml", conf)
	for program, text := range map[string]string{
		"ingest":  conf + "machine: " + machine + "\nlayout: layout.yaml\nspool: spool\nsource: {kind: csv, file: day.csv, speed: 1}\n",
		"monitor": conf + "model: m.flank\npage: \"\"\n",
	} {
		t.Run(program, func(t *testing.T) {
			first, err := net.Listen("tcp", loopback.Host(3)+":0")
			if err != nil {
				t.Fatal(err)
			}
			taken, err := net.Listen("tcp", loopback.Host(3)+":0")
			if err != nil {
				t.Fatal(err)
			}
			first.Close()
			var p *process
			until := func(what string, ok func() bool) {
				t.Helper()
				for deadline := time.Now().Add(patience); !ok(); time.Sleep(200 * time.Millisecond) {
					if time.Now().After(deadline) {
						p.kill()
						t.Fatalf("%s does not come\n%s", what, &p.stderr)
					}
				}
			}
			ready := func(address net.Addr) func() bool {
				return func() bool {
					res, err := http.Get("http://" + address.String() + "/readyz")
					if err != nil {
						return false
					}
					res.Body.Close()
					return res.StatusCode == http.StatusOK
				}
			}
			use := func(address net.Addr) {
				t.Helper()
				write(t, dir, program+".yaml", text+"metrics: "+address.String()+"\n")
				if p == nil {
					p = start(t, program, "run", "--config", at(program+".yaml"))
				} else if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
					t.Fatal(err)
				}
			}
			audited := func(want ...string) func() bool {
				return func() bool {
					var all []event.Audit
					if err := json.Unmarshal([]byte(run(t, "monitor", "audit", "--config", at("list.yaml"), "--action", "reload", "-o", "json")), &all); err != nil {
						t.Fatal(err)
					}
					var got []string
					for _, a := range all {
						if a.Program == program {
							got = append(got, strings.TrimSpace(string(a.Outcome)+" "+a.Reason[max(0, len(a.Reason)-len(inUse)):]))
						}
					}
					return slices.Equal(got, want)
				}
			}
			use(first.Addr())
			until("the first run", ready(first.Addr()))
			use(taken.Addr())
			until("the record of the refusal", audited("accepted", "refused "+inUse))
			until("the first configuration again", ready(first.Addr()))
			taken.Close()
			if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
			until("the second configuration", ready(taken.Addr()))
			if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			p.wait(t)
			if !audited("accepted", "refused "+inUse, "accepted")() {
				t.Error("the last reload is not in the audit")
			}
		})
	}
}

// inUse is the end of the error of an address that another program has.
const inUse = "address already in use: choose another address, or stop the program that uses it"
