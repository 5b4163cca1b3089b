//go:build e2e

package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/testkit/kafkatest"
)

// Rows 20 and 21. TestSecured: the programs with a broker that refuses access without a password
// or a certificate.
func accessRefused(t *testing.T, r *record) {
	if kafkatest.Version() == "" {
		r.skip("needs Apache Kafka: set FLANK_KAFKA")
	}
	ok := t.Run("programs", TestSecured)
	r.exact(figure{
		What: "20: access refused, each with its own words and exit code", Count: "20 ways, by `check` and by `run`, of three programs", Goal: "all", Measured: heldOrNot(ok),
		Note: "Wrong password, unknown user, in the clear, no password, a password in the clear, authority not trusted, another host, no certificate, one that expired, one of a stranger, rights that are missing, a group of others' name. A step of `check` that takes 5 s fails. Replayed commands are refused by tests of the monitor, not here.",
	}, ok)
	r.exact(figure{
		What: "21: certificate and password renewed while the programs run: windows or results lost", Count: "1 certificate, 1 password, each bad while the broker came back", Goal: "0", Measured: map[bool]string{true: "0", false: "see the test"}[ok],
	}, ok)
}

func heldOrNot(ok bool) string {
	if ok {
		return "all"
	}
	return "not all: see the test"
}

// Row 22. The programs work and fail with known secrets. Then the test searches everything that
// they wrote.
func secretsLeak(t *testing.T, r *record) {
	if kafkatest.Version() == "" {
		r.skip("needs Apache Kafka: set FLANK_KAFKA")
	}
	f := &fortress{t: t, k: kafkatest.StartSecure(t), dir: prepare(t, "127.0.0.1:1", 0)}
	plant := map[string]string{
		"password of ingest": "pw-ingest-7Kq2vXw9", "password of monitor": "pw-monitor-Zt84mLrB", "password of monitor, in the environment": "pw-monitor-Zt84mLrB", "wrong password": "pw-wrong-c3Np5YdE",
	}
	f.k.User(t, "ingest", plant["password of ingest"])
	f.k.User(t, "monitor", plant["password of monitor"])
	f.k.GrantDocumented(t, "ingest")
	f.k.GrantDocumented(t, "monitor")
	own := map[string]bool{} // files that may contain the secrets
	secretFile := func(name, text string) {
		write(t, f.dir, name, text+"\n")
		own[name] = true
	}
	secretFile("password", plant["password of ingest"])
	secretFile("password-monitor", plant["password of monitor"])
	secretFile("wrong", plant["wrong password"])
	t.Setenv("FLANK_CHAOS_PASSWORD", plant["password of monitor"])
	adminCert, adminKey := f.issue("admin", "admin", time.Now().Add(time.Hour))
	for _, name := range []string{"ingest", "admin"} {
		_, key := f.issue(name, name, time.Now().Add(time.Hour))
		text := string(read(t, key))
		body := strings.Join(strings.Split(strings.TrimSpace(text), "\n")[1:], "")
		plant["private key of "+name] = strings.Split(body, "-----")[0][40:80]
		own[filepath.Base(key)] = true
	}
	cfg := bus.Config{Brokers: []string{f.k.MTLS}, ClientID: "e2e", TLS: &bus.TLS{TLS: credential.TLS{CA: f.k.CAFile(), Cert: adminCert, Key: adminKey}}}
	if _, err := bus.Apply(context.Background(), cfg, 2, 1); err != nil {
		t.Fatal(err)
	}

	const source = "machine: " + machine + "\nlayout: layout.yaml\nspool: spool\nsource: {kind: csv, file: day.csv, speed: 30}\n"
	metrics, page := freeAddr(t), freeAddr(t)
	verbose := []string{"run", "--verbose", "--config", "CONFIG"}
	mon := f.begin(f.command("monitor", strings.Replace(f.login("monitor", ""), "password_file: \"\"", "password_env: FLANK_CHAOS_PASSWORD", 1)+fmt.Sprintf("model: m.flank\npage: %q\n", page), slices.Clone(verbose)...))
	f.begin(f.command("ingest", f.login("ingest", "password")+source+fmt.Sprintf("metrics: %q\n", metrics), slices.Clone(verbose)...))
	results := follow(t, cfg, bus.TopicResults)
	results.until(t, 300, "results")
	// Dead letters quote the messages of others, which may hold their secrets. The
	// programs' own secrets must not be among them.
	out, err := bus.NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	for i := range 50 {
		if err := out.Send(context.Background(), []bus.Message{{Topic: bus.TopicWindows, Key: fmt.Sprint(i), Value: []byte("not a window")}}); err != nil {
			t.Fatal(err)
		}
	}
	pages := ""
	for _, url := range []string{"http://" + metrics + "/metrics", "http://" + page + "/", "http://" + page + "/metrics"} {
		res, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(res.Body)
		res.Body.Close()
		pages += string(text)
	}
	// Failures write most.
	for _, args := range [][]string{{"check", "--config", "CONFIG"}, {"run", "--verbose", "--config", "CONFIG"}} {
		f.ends(f.command("ingest", f.login("ingest", "wrong")+strings.Replace(source, "spool: spool", "spool: spool2", 1), slices.Clone(args)...))
		f.ends(f.command("ingest", strings.Replace(f.login("ingest", "password"), "user: ingest", "user: mallory", 1)+strings.Replace(source, "spool: spool", "spool: spool2", 1), slices.Clone(args)...))
		f.ends(f.command("monitor", f.login("monitor", "wrong")+"model: m.flank\npage: \"\"\n", slices.Clone(args)...))
		f.ends(f.command("ingest", f.card("absent")+source, slices.Clone(args)...))
		f.ends(f.command("ingest", strings.Replace(f.card("ingest"), "ingest.crt", "ingest.key", 1)+source, slices.Clone(args)...)) // a key for a certificate
		f.ends(f.command("ingest", f.login("ingest", "ingest.key")+source, slices.Clone(args)...))                                  // a key for a password
	}
	f.k.Kill()
	f.k.Restart(t)
	results.until(t, windows, "results")
	_ = mon.Process.Kill()

	hay := map[string]string{"output of the programs": f.said.String(), "pages and metrics": pages}
	dead := 0
	for _, topic := range []string{bus.TopicWindows, bus.TopicResults, bus.TopicAlerts, bus.TopicState, bus.TopicDead, bus.TopicCommands, bus.TopicModels} {
		var b strings.Builder
		err := readTopic(context.Background(), cfg, topic, bus.FirstOffset, false, func(m bus.Message) error {
			b.WriteString(m.Key)
			b.Write(m.Value)
			for _, h := range m.Headers {
				b.WriteString(h.Key)
				b.Write(h.Value)
			}
			if topic == bus.TopicDead {
				dead++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		hay["topic "+topic] = b.String()
	}
	err = filepath.WalkDir(f.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || own[filepath.Base(path)] {
			return err
		}
		text, err := os.ReadFile(path)
		hay[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	hits, bytes := 0, 0
	for where, text := range hay {
		bytes += len(text)
		for name, s := range plant {
			for _, form := range []string{s, base64.StdEncoding.EncodeToString([]byte(s)), fmt.Sprintf("%x", s)} {
				if strings.Contains(text, form) {
					hits++
					t.Errorf("%s is in %s", name, where)
				}
			}
		}
	}
	r.exact(figure{
		What: "planted secrets found", Count: fmt.Sprintf("%d secrets as they are, in base64 and in hex, in %.1f MB: logs at their most verbose, metrics, page, all topics (%d dead letters), spools", len(plant), float64(bytes)/1e6, dead),
		Goal: "0", Measured: fmt.Sprint(hits), Note: "Searched after the programs had worked and failed: wrong passwords, unknown users, files that are missing, a key where a certificate or a password should be.",
	}, hits == 0 && dead >= 50)
}
