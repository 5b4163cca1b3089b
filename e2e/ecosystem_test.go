//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/testkit/await"
	"github.com/flank-tcm/flank/internal/testkit/mqtttest"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// others is the folder of the programs of other makers, which `make ecosystem` fetches.
func others(t *testing.T, parts ...string) string {
	t.Helper()
	dir := os.Getenv("FLANK_OTHERS")
	if dir == "" {
		t.Fatal("FLANK_OTHERS is not set: run make ecosystem, which fetches Node-RED, Telegraf and MLflow")
	}
	return filepath.Join(append([]string{dir}, parts...)...)
}

// startOther starts a program of another maker, whose output the test shows if it fails.
func startOther(t *testing.T, env []string, name string, args ...string) {
	t.Helper()
	p := &process{cmd: exec.Command(name, args...)}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the server of MLflow starts others
	p.cmd.Stdout, p.cmd.Stderr = &p.stderr, &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		_ = p.cmd.Wait()
		if t.Failed() {
			t.Logf("%s: %s", name, &p.stderr)
		}
	})
}

// An alert of Flank lights the lamp and reaches people through the flow of examples/node-red, a button acknowledges it through
// the API of the page, and the lamp is not green once the monitor has stopped.
func TestEcosystemNodeRED(t *testing.T) {
	red := others(t, "node-red", "node_modules", "node-red", "red.js")
	mqtt := mqtttest.Start(t, mqtttest.Options{})
	b, cfg := startServer(t, 2)
	dir, page := prepare(t, b.Addr(), 100), freeAddr(t)
	write(t, dir, "day.csv", wearing(rand.New(rand.NewPCG(2, 1)), 1, rows)) // its alarm stays open
	token, err := credential.AddPerson(filepath.Join(dir, "people.yaml"), credential.Person{Name: "button", Role: credential.Operator})
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "monitor.yaml", fmt.Sprintf("kafka: {brokers: [%q]}\nmodel: m.flank\npage: {listen: %q, people: people.yaml}\nalerts: {routes: [{name: hmi, mqtt: {broker: %q}}]}\n", b.Addr(), page, mqtt.URL))

	var mu sync.Mutex
	lamps, told := "", []string{}
	mqtt.Subscribe(t, "plant/light/"+machine, func(_ string, payload []byte, _ bool) {
		mu.Lock()
		defer mu.Unlock()
		lamps = string(payload)
	})
	people := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		told = append(told, string(text))
	}))
	t.Cleanup(people.Close)
	light := func(want string) {
		t.Helper()
		await.Right(t, func() string {
			mu.Lock()
			defer mu.Unlock()
			if lamps == want {
				return ""
			}
			return fmt.Sprintf("the lamps are %s, want %s; people got %q", lamps, want, told)
		})
	}
	env := []string{"FLANK_MQTT=" + mqtt.URL, "FLANK_PAGE=http://" + page, "FLANK_TOKEN=" + token, "FLANK_MESSAGES=" + people.URL}
	host, port, _ := strings.Cut(freeAddr(t), ":")
	flow := write(t, dir, "flank.json", string(read(t, "../examples/node-red/flank.json"))) // Node-RED writes next to it
	startOther(t, env, "node", red, "--userDir", t.TempDir(), "--port", port, "-D", "uiHost="+host, flow)

	alerts := follow(t, cfg, bus.TopicAlerts)
	monitor := start(t, "monitor", "run", "--config", filepath.Join(dir, "monitor.yaml"))
	start(t, "ingest", "run", "--config", filepath.Join(dir, "ingest.yaml"))
	light(`{"red":"flash","amber":"off","green":"off"}`)
	await.Until(t, "a message to people", func() bool { mu.Lock(); defer mu.Unlock(); return len(told) > 0 })
	mqtt.Publish(t, "plant/ack/"+machine, []byte("pressed"), false)
	light(`{"red":"on","amber":"off","green":"off"}`)
	var raised, acknowledged event.Alert
	await.Until(t, "the acknowledgement is on its topic", func() bool { // the lamp may hear of it first
		for _, a := range checkAlerts(t, alerts) {
			switch a.State {
			case event.Raised:
				raised = a
			case event.Acknowledged:
				acknowledged = a
			}
		}
		return acknowledged.ID != ""
	})
	mu.Lock()
	got := slices.Clone(told)
	mu.Unlock()
	if acknowledged.Incident != raised.Incident || acknowledged.By != "button" || len(got) != 1 || !strings.Contains(got[0], raised.Incident) {
		t.Errorf("raised %+v, acknowledged %+v, people got %q", raised, acknowledged, got)
	}
	_ = monitor.cmd.Process.Signal(os.Interrupt)
	light(`{"red":"off","amber":"flash","green":"off"}`)
}

// Samples of Telegraf, with the configurations of examples/telegraf, are in windows. Their counters follow their times, so that a poll
// which this computer was too busy for is a gap.
func TestEcosystemTelegraf(t *testing.T) {
	telegraf, mqtt := others(t, "telegraf"), mqtttest.Start(t, mqtttest.Options{})
	b, cfg := startServer(t, 2)
	dir := t.TempDir()
	layoutFile := write(t, dir, "layout.yaml", string(read(t, "../examples/telegraf/layout.yaml")))
	config := write(t, dir, "ingest.yaml", strings.NewReplacer("127.0.0.1:9092", b.Addr(), "mqtt://127.0.0.1:1883", mqtt.URL, "../../flank-data/spool-telegraf", "spool").
		Replace(string(read(t, "../examples/telegraf/ingest.yaml"))))
	sent := follow(t, cfg, bus.TopicWindows)
	start(t, "ingest", "run", "--config", config)
	await.Until(t, "ingest subscribes", func() bool { return mqtt.Subscribers("flank/"+machine+"/samples") > 0 })
	startOther(t, []string{"FLANK_MQTT=" + mqtt.URL, "FLANK_MACHINE=" + machine}, telegraf, "--config", "../examples/telegraf/telegraf.conf")
	sent.until(t, 4, "windows")

	layout, _, err := signal.LoadLayout(layoutFile)
	if err != nil {
		t.Fatal(err)
	}
	codec, err := window.NewCodec(layout, window.DefaultSpec)
	if err != nil {
		t.Fatal(err)
	}
	var first, before window.Window
	for i, m := range sent.all() {
		var w window.Window
		if err := envelope.Open(codec, &m, &w); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = w
		} else if w.First < before.First+10 || w.Start.Sub(first.Start) != time.Duration(w.First-first.First)*100*time.Millisecond {
			t.Errorf("window %d begins at sample %d, %v, after a window of sample %d; sample %d was at %v", i, w.First, w.Start, before.First, first.First, first.Start)
		}
		before = w
		for c, within := range [][2]float32{{3.8, 4.2}, {9, 9.5}} {
			if len(w.Samples[c]) != 10 {
				t.Errorf("window %d has %d samples of %s", i, len(w.Samples[c]), layout.Channels()[c].Name)
			}
			for _, x := range w.Samples[c] {
				if !(within[0] <= x && x <= within[1]) {
					t.Errorf("window %d: %s is %v", i, layout.Channels()[c].Name, x)
				}
			}
		}
	}
}

// An MLflow server has the run of a model that trainer fit wrote: parameters, metrics, and the files as they are. A second export finds it.
func TestEcosystemMLflow(t *testing.T) {
	python := others(t, "mlflow", "bin", "python")
	dir, at := prepare(t, "127.0.0.1:1", 0), freeAddr(t)
	write(t, dir, "train.yaml", strings.ReplaceAll(string(read(t, filepath.Join(dir, "train.yaml"))), `by_tool: "off", `, "")) // a run has scores of tools held out
	run(t, "trainer", "fit", "--quiet", "--config", filepath.Join(dir, "train.yaml"), "--data", filepath.Join(dir, "history.csv"), "--model", filepath.Join(dir, "m.flank"))
	server := "http://" + at
	host, port, _ := strings.Cut(at, ":")
	// Jobs are of language models, and need other packages.
	startOther(t, []string{"MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false"}, python, "-m", "mlflow", "server", "--host", host, "--port", port, "--allowed-hosts", at, "--workers", "1",
		"--backend-store-uri", "sqlite:///"+filepath.Join(dir, "mlflow.db"), "--artifacts-destination", filepath.Join(dir, "artifacts"))
	await.Until(t, "the server of MLflow", func() bool {
		res, err := http.Get(server + "/health")
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	model := filepath.Join(dir, "m.flank")
	c := exec.Command(python, "../examples/mlflow/export.py", model, model)
	c.Env = append(os.Environ(), "MLFLOW_TRACKING_URI="+server)
	text, err := c.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	runs := regexp.MustCompile(`(?m)^[0-9a-f]{32}$`).FindAllString(string(text), -1)
	if len(runs) != 2 || runs[0] != runs[1] {
		t.Fatalf("exporting a model twice printed the runs %v, want one run twice", runs)
	}
	id := runs[0]
	var got struct {
		Run struct {
			Info struct {
				Status string
				Name   string `json:"run_name"`
			}
			Data struct {
				Metrics      []struct{ Key string }
				Params, Tags []struct{ Key, Value string }
			}
		}
	}
	if err := json.Unmarshal(fetch(t, server+"/api/2.0/mlflow/runs/get?run_id="+id), &got); err != nil {
		t.Fatal(err)
	}
	var report struct{ Model string }
	if err := json.Unmarshal(read(t, filepath.Join(dir, "m.report.json")), &report); err != nil {
		t.Fatal(err)
	}
	all := fmt.Sprint(got.Run)
	for _, want := range []string{"FINISHED " + report.Model, "{pooled.gmean}", "{wear.mae_um}", "{counting_unknown.gmean}", "{alarms.false_alarms}", "{network.fine_tune.epochs 30}", "{seed 1}", "{flank.data.history sha256:", "{flank.verdict "} {
		if !strings.Contains(all, want) {
			t.Errorf("the run lacks %s: %s", want, all)
		}
	}
	for _, name := range []string{"m.flank", "m.report.json", "m.report.html"} {
		if !bytes.Equal(fetch(t, server+"/get-artifact?run_id="+id+"&path="+name), read(t, filepath.Join(dir, name))) {
			t.Errorf("%s is not what trainer fit wrote", name)
		}
	}
}

// fetch returns the body that a server answers with.
func fetch(t *testing.T, url string) []byte {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s: %v\n%s", url, res.Status, err, text)
	}
	return text
}
