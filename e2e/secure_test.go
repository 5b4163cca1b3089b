//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/kafkatest"
	"github.com/flank-tcm/flank/internal/testkit/logtest"
)

// secret is a password that must not appear in any output.
const secret = "s3cret-of-the-plant"

// fortress is a broker that requires a password or a certificate. Its users have only the rights
// of deploy/kafka/acls.md.
type fortress struct {
	t       *testing.T
	k       *kafkatest.Broker
	dir     string
	secrets []string
	files   int            // of configurations so far
	said    logtest.Buffer // by all programs
}

// login is the kafka part of a configuration, with a password.
func (f *fortress) login(user, passwordFile string) string {
	return fmt.Sprintf("kafka: {brokers: [%q], tls: {ca: %q}, sasl: {user: %s, password_file: %q}}\n", f.k.Addr, f.k.CAFile(), user, passwordFile)
}

// card is the same with a certificate.
func (f *fortress) card(name string) string {
	return fmt.Sprintf("kafka: {brokers: [%q], tls: {ca: %q, cert: %q, key: %q}}\n", f.k.MTLS, f.k.CAFile(), name+".crt", name+".key")
}

func (f *fortress) issue(name, file string, notAfter time.Time) (cert, key string) {
	return f.k.Issue(f.t, name, notAfter).WriteFiles(f.t, f.dir, file)
}

// command returns a program with its configuration in a new file.
func (f *fortress) command(name, config string, args ...string) *exec.Cmd {
	f.files++
	file := write(f.t, f.dir, fmt.Sprintf("%s-%d.yaml", name, f.files), config)
	for i, a := range args {
		args[i] = strings.ReplaceAll(a, "CONFIG", file)
	}
	cmd := exec.Command(filepath.Join(bin, name), args...)
	cmd.Stdout, cmd.Stderr = &f.said, &f.said
	return cmd
}

func (f *fortress) begin(cmd *exec.Cmd) *exec.Cmd {
	f.t.Helper()
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd
}

// ends runs a program to its end and returns its exit code and output.
func (f *fortress) ends(cmd *exec.Cmd) (code int, said string) {
	var own bytes.Buffer
	cmd.Stdout, cmd.Stderr = &own, &own
	err := cmd.Start()
	if err == nil {
		stop := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		defer stop.Stop()
		err = cmd.Wait()
	}
	_, _ = f.said.Write(own.Bytes())
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return -2, err.Error()
	}
	return cmd.ProcessState.ExitCode(), own.String()
}

// The programs work with only the rights of deploy/kafka/acls.md, by password and by
// certificate. Each refusal has its own message and exit code. Certificate and password are
// renewed while the programs run. No password appears in any output.
func TestSecured(t *testing.T) {
	if kafkatest.Version() == "" {
		t.Skip("FLANK_KAFKA names no version of Apache Kafka: make e2e-kafka does")
	}
	f := &fortress{t: t, k: kafkatest.StartSecure(t), dir: prepare(t, "127.0.0.1:1", 0), secrets: []string{secret, secret + "-renewed"}}
	for _, user := range []string{"ingest", "monitor", "trainer", "outsider"} {
		f.k.User(t, user, secret)
		if user != "outsider" {
			f.k.GrantDocumented(t, user)
		}
	}
	write(t, f.dir, "password", secret+"\n")
	cert, key := f.issue("admin", "admin", time.Now().Add(time.Hour))
	f.issue("ingest", "ingest", time.Now().Add(time.Hour))
	cfg := bus.Config{Brokers: []string{f.k.MTLS}, ClientID: "e2e", TLS: &bus.TLS{TLS: credential.TLS{CA: f.k.CAFile(), Cert: cert, Key: key}}}
	if code, said := f.ends(f.command("ingest", f.card("admin"), "topics", "apply", "--config", "CONFIG")); code != 0 {
		t.Fatalf("topics apply: %d\n%s", code, said)
	}
	f.refusals()
	if !t.Failed() {
		f.renewal(cfg)
	}
	for _, s := range f.secrets {
		if strings.Contains(f.said.String(), s) {
			t.Errorf("a program has said the password %s", s)
		}
	}
}

// starting is what programs say of a broker on a busy machine that does not lead its new topics yet.
var starting = regexp.MustCompile(`no answer from \S+ in time|Not Leader For Partition`)

// refusals runs the programs with good and with bad access. They ask again while the broker is starting.
func (f *fortress) refusals() {
	t := f.t
	const source = "machine: " + machine + "\nlayout: layout.yaml\nsource: {kind: csv, file: day.csv, speed: 0}\n"
	const judge = "model: m.flank\npage: \"\"\n"
	write(t, f.dir, "wrong", "wrong\n")
	f.issue("ingest", "expired", time.Now().Add(-time.Minute))
	stranger, err := kafkatest.Stranger()
	if err != nil {
		t.Fatal(err)
	}
	stranger.WriteFiles(t, f.dir, "stranger")
	write(t, f.dir, "wear.csv", "machine,tool,time,vb_max_um\n"+machine+",T0,2026-11-02T06:00:00Z,100\n")
	good := f.login("ingest", "password")
	check := []string{"check", "--config", "CONFIG"}
	runs := []string{"run", "--config", "CONFIG"}
	fit := []string{"fit", "--quiet", "--config", filepath.Join(f.dir, "train.yaml"), "--wear", filepath.Join(f.dir, "wear.csv"), "--model", filepath.Join(f.dir, "refused.flank"), "--kafka-config", "CONFIG"}
	var wg sync.WaitGroup
	turns := make(chan struct{}, 4) // at once
	for name, tc := range map[string]struct {
		program, config string
		args            []string
		code            int
		want            string
	}{
		"ingest by password":    {"ingest", good, check, 0, "user ingest"},
		"ingest by certificate": {"ingest", f.card("ingest"), check, 0, "client's certificate expires in 0 d (renew it soon), broker's certificate expires in"},
		"monitor":               {"monitor", f.login("monitor", "password") + judge, check, 0, "join tcm-monitor"},

		"wrong password":        {"ingest", f.login("ingest", "wrong"), check, 6, "does not let user ingest in: correct the user or the password"},
		"unknown user":          {"ingest", f.login("mallory", "password"), check, 6, "does not let user mallory in"},
		"in the clear":          {"ingest", fmt.Sprintf("kafka: {brokers: [%q]}\n", f.k.Addr), check, 6, "wants TLS"},
		"no password":           {"ingest", fmt.Sprintf("kafka: {brokers: [%q], tls: {ca: %q}}\n", f.k.Addr, f.k.CAFile()), check, 6, "wants TLS or a password"},
		"password in the clear": {"ingest", fmt.Sprintf("kafka: {brokers: [%q], sasl: {user: ingest, password_file: password}}\n", f.k.Addr), check, 1, "without `tls` anyone on the network"},
		"authority not trusted": {"ingest", strings.Replace(good, f.k.CAFile(), "stranger.crt", 1), check, 5, "signed by an authority that this program does not trust"},
		"another host":          {"ingest", strings.Replace(good, "tls: {", "tls: {server_name: kafka.example, ", 1), check, 5, "is for another host"},
		"no certificate":        {"ingest", fmt.Sprintf("kafka: {brokers: [%q], tls: {ca: %q}}\n", f.k.MTLS, f.k.CAFile()), check, 5, "refuses this program's certificate"},
		"certificate expired":   {"ingest", f.card("expired"), check, 5, "refuses this program's certificate"},
		"stranger":              {"ingest", f.card("stranger"), check, 5, "refuses this program's certificate"},
		"no right to the topic": {"ingest", f.login("outsider", "password"), check, 7, "no right to it"},
		"may read, not write":   {"ingest", f.login("trainer", "password"), check, 8, "write topic tcm.windows.v1: [29] Topic Authorization Failed"},
		"monitor as ingester":   {"monitor", f.login("ingest", "password") + judge, check, 7, "no right to it"},
		"another group":         {"monitor", f.login("monitor", "password") + judge + "group: others\n", check, 8, "join group others: [30]"},
		"a page, no right":      {"monitor", f.login("monitor", "password") + "model: m.flank\npage: 127.0.0.1:0\n", check, 8, "read topic tcm.results.v1, read topic tcm.shadow.v1, read topic tcm.alerts.v1: [29]"},
		"a route, no right":     {"monitor", f.login("monitor", "password") + judge + "alerts: {routes: [{name: r, webhook: {url: \"http://127.0.0.1:1\"}}]}\n", check, 8, "read topic tcm.alerts.v1: [29]"},

		"ingest run, wrong password":  {"ingest", f.login("ingest", "wrong") + source + "spool: spool-wrong\n", runs, 1, "does not let user ingest in"},
		"ingest run, no right":        {"ingest", f.login("outsider", "password") + source + "spool: spool-outsider\n", runs, 1, "no right to it"},
		"monitor run, wrong password": {"monitor", f.login("monitor", "wrong") + judge, runs, 1, "does not let user monitor in"},
		"monitor run, another group":  {"monitor", f.login("monitor", "password") + judge + "group: strangers\n", runs, 1, "lacks the right"},
		"trainer, wrong password":     {"trainer", f.login("trainer", "wrong"), fit, 1, "does not let user trainer in"},
		"trainer, no right":           {"trainer", f.login("outsider", "password"), fit, 1, "no right to it"},
	} {
		if tc.program == "ingest" && tc.args[0] == "check" {
			tc.config += "machine: " + machine + "\n"
		}
		cmd := f.command(tc.program, tc.config, append([]string(nil), tc.args...)...)
		wg.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			code, said := f.ends(cmd)
			for began := time.Now(); starting.MatchString(said) && time.Since(began) < patience; {
				code, said = f.ends(exec.Command(cmd.Path, cmd.Args[1:]...))
			}
			if code != tc.code || !strings.Contains(said, tc.want) {
				t.Errorf("%s: exit code %d, want %d and %q\n%s", name, code, tc.code, tc.want, said)
			}
		})
	}
	wg.Wait()
}

// renewal runs the programs. While the broker is away it makes the ingester's certificate and
// the monitor's password bad, and later good again. No program is restarted.
func (f *fortress) renewal(cfg bus.Config) {
	t := f.t
	text, _, _ := strings.Cut(recording(2), "\n")
	for i := range uint64(4) { // more than the test waits for
		_, rows, _ := strings.Cut(recording(2+i), "\n")
		text += "\n" + strings.TrimSpace(strings.ReplaceAll(rows, ",T", fmt.Sprintf(",R%d", i)))
	}
	write(t, f.dir, "long.csv", text)
	lines := strings.Split(text, "\n")[1:]
	metrics, page := freeAddr(t), freeAddr(t)
	ingester := f.command("ingest", f.card("ingest")+fmt.Sprintf("machine: %s\nlayout: layout.yaml\nspool: spool\nsource: {kind: csv, file: long.csv, speed: 100}\nmetrics: %q\n", machine, metrics), "run", "--config", "CONFIG")
	var summary bytes.Buffer
	ingester.Stdout = &summary
	f.begin(ingester)
	f.begin(f.command("monitor", f.login("monitor", "password")+fmt.Sprintf("model: m.flank\npage: %q\n", page), "run", "--config", "CONFIG"))
	sent, results, dead := follow(t, cfg, bus.TopicWindows), follow(t, cfg, bus.TopicResults), follow(t, cfg, bus.TopicDead)
	const some = 100
	sent.until(t, some, "windows")
	results.until(t, some, "results")
	if left := scrape(t, metrics, `tcm_certificate_days_left{certificate="client"}`); left < 0 || left > 1 {
		t.Errorf("the ingester's certificate has %v days left, says its metric", left)
	}
	if left := scrape(t, page, `tcm_certificate_days_left{certificate="broker"}`); left < 0 || left > 1 {
		t.Errorf("the broker's certificate has %v days left, says the monitor's metric", left)
	}

	f.issue("ingest", "ingest", time.Now().Add(-time.Minute))
	f.k.User(t, "monitor", secret+"-renewed")
	f.k.Kill() // programs have to connect again
	f.k.Restart(t)
	at := sent.distinct()
	f.until(func() bool {
		return strings.Contains(f.said.String(), "refuses this program's certificate") && strings.Contains(f.said.String(), "does not let user monitor in") &&
			scrape(t, metrics, "tcm_windows_pending") > some
	}, "refusals")
	if left := scrape(t, metrics, `tcm_certificate_days_left{certificate="client"}`); left >= 0 {
		t.Errorf("a certificate that has expired has %v days left, says the metric", left)
	}
	if n := sent.distinct() - at; n > some {
		t.Errorf("%d windows were sent with a certificate that has expired", n)
	}
	f.issue("ingest", "ingest", time.Now().Add(time.Hour))
	write(t, f.dir, "password", secret+"-renewed\n")
	sent.until(t, max(at+some, 1000), "windows")
	if err := ingester.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := ingester.Wait(); err != nil {
		t.Fatal(err)
	}
	var count, delivered, pending int
	if _, err := fmt.Sscanf(summary.String(), "%d windows cut, %d delivered, %d pending", &count, &delivered, &pending); err != nil {
		t.Fatalf("%v\n%s", err, &summary)
	}
	if pending > 0 { // it stopped before it had sent all windows
		if code, said := f.ends(exec.Command(ingester.Path, "spool", "resend", "--since", "1h", "--config", ingester.Args[3])); code != 0 {
			t.Fatal(said)
		}
	}
	sent.until(t, count, "windows")
	results.until(t, count, "results")
	checkResults(t, results, count) // seqs from 0 on, none missing
	if n := len(dead.all()); n > 0 {
		t.Errorf("%d dead letters", n)
	}
	if !strings.Contains(f.said.String(), `"event":"certificate_expires"`) {
		t.Error("no program warned of a certificate that expires within an hour")
	}

	var wear strings.Builder
	wear.WriteString("machine,tool,time,vb_max_um\n")
	known := map[string]bool{}
	for _, m := range results.all() {
		var r event.Result
		if err := json.Unmarshal(m.Value, &r); err != nil {
			t.Fatal(err)
		}
		if known[r.ID] {
			continue // came twice
		}
		known[r.ID] = true
		cells := strings.Split(lines[r.Seq], ",")
		fmt.Fprintf(&wear, "%s,%s,%s,%s\n", r.Machine, r.Tool, r.Start.Format(time.RFC3339Nano), cells[4])
	}
	write(t, f.dir, "measured.csv", wear.String())
	f.k.User(t, "trainer", secret+"-renewed")
	code, said := f.ends(f.command("trainer", f.login("trainer", "password"), "fit", "--quiet", "--config", filepath.Join(f.dir, "train.yaml"),
		"--wear", filepath.Join(f.dir, "measured.csv"), "--model", filepath.Join(f.dir, "learnt.flank"), "--kafka-config", "CONFIG"))
	if _, err := os.Stat(filepath.Join(f.dir, "learnt.flank")); code != 0 || err != nil || !strings.Contains(said, fmt.Sprintf("%d windows cut", count)) {
		t.Errorf("trainer: exit code %d, %v\n%s", code, err, said)
	}
}

// until waits until ok.
func (f *fortress) until(ok func() bool, what string) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for !ok() {
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			f.t.Fatalf("still waiting for %s\n%s", what, &f.said)
		}
	}
}
