// Package deploy checks docker-compose.yml without a container engine: the services, the
// order in which they start, and that the programs know every command line, file, path and
// port in it.
package deploy

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"go.yaml.in/yaml/v3"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event/evidence"
)

// load reads docker-compose.yml as `docker compose` does, with no environment.
func load(t *testing.T) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{"../docker-compose.yml"}, cli.WithName("flank"), cli.WithProfiles([]string{"*"}))
	if err != nil {
		t.Fatal(err)
	}
	p, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// ours are the services that run Flank's programs.
var ours = []string{"ingest", "monitor", "retrain", "topics", "trainer"}

// The services, and which of them wait for others. A one-shot service ends before the services
// that need it start. No service waits for the end of a service that runs for ever.
func TestServices(t *testing.T) {
	p := load(t)
	want := map[string]map[string]string{
		"kafka":   {},
		"topics":  {"kafka": types.ServiceConditionHealthy},
		"retrain": {"topics": types.ServiceConditionCompletedSuccessfully},
		"trainer": {},
		"ingest":  {"topics": types.ServiceConditionCompletedSuccessfully},
		"monitor": {"topics": types.ServiceConditionCompletedSuccessfully, "trainer": types.ServiceConditionCompletedSuccessfully},

		"prometheus": {}, // it asks again
		"grafana":    {},
	}
	if got := slices.Sorted(maps.Keys(p.Services)); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
		t.Fatalf("services %v", got)
	}
	for name, s := range p.Services {
		conditions := map[string]string{}
		for on, d := range s.DependsOn {
			conditions[on] = d.Condition
		}
		if !maps.Equal(conditions, want[name]) {
			t.Errorf("%s depends on %v, want %v", name, conditions, want[name])
		}
		restart := ""
		if slices.Contains([]string{"kafka", "ingest", "monitor", "prometheus", "grafana"}, name) {
			restart = types.RestartPolicyUnlessStopped
		}
		if s.Restart != restart {
			t.Errorf("%s: restart %q, want %q", name, s.Restart, restart)
		}
		if lives := restart != ""; lives != (s.HealthCheck != nil) {
			t.Errorf("%s: a health check %+v, want one: %v", name, s.HealthCheck, lives)
		}
		if s.MemLimit <= 0 || s.PidsLimit <= 0 {
			t.Errorf("%s: memory or processes without a bound", name)
		}
		if len(s.Entrypoint) > 0 || s.Privileged || s.NetworkMode != "" {
			t.Errorf("%s: an entrypoint, privileges or a network mode", name)
		}
	}
	for _, name := range ours {
		if s := p.Services[name]; s.Build == nil || s.Build.Context != p.WorkingDir || !s.ReadOnly || s.User != "65532:65532" || !slices.Equal(s.CapDrop, []string{"ALL"}) {
			t.Errorf("%s: not built from here, with a root that can be written, or as another user: %+v", name, s)
		}
	}
}

// Kafka is the official image at one version, alone in KRaft mode, reached under
// its service's name, and keeps its data on the volume.
func TestKafka(t *testing.T) {
	s := load(t).Services["kafka"]
	if !regexp.MustCompile(`^apache/kafka:\d+\.\d+\.\d+$`).MatchString(s.Image) {
		t.Errorf("image %q: want apache/kafka at one version", s.Image)
	}
	env := s.Environment.Resolve(func(string) (string, bool) { return "", false })
	for key, want := range map[string]string{
		"KAFKA_PROCESS_ROLES":                            "broker,controller",
		"KAFKA_CONTROLLER_QUORUM_VOTERS":                 "1@kafka:9093",
		"KAFKA_NODE_ID":                                  "1",
		"KAFKA_LISTENERS":                                "PLAINTEXT://:9092,PLANT://:9094,CONTROLLER://:9093",
		"KAFKA_ADVERTISED_LISTENERS":                     "PLAINTEXT://kafka:9092,PLANT://127.0.0.1:9094",
		"KAFKA_AUTO_CREATE_TOPICS_ENABLE":                "false", // so that topics have the settings they need
		"KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR":         "1",     // there is one broker
		"KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
	} {
		if got := env[key]; got == nil || *got != want {
			t.Errorf("%s is not %q", key, want)
		}
	}
	if len(s.Volumes) != 1 || s.Volumes[0].Type != types.VolumeTypeVolume || env["KAFKA_LOG_DIRS"] == nil || s.Volumes[0].Target != *env["KAFKA_LOG_DIRS"] {
		t.Errorf("volumes %v, KAFKA_LOG_DIRS %v: want the data on one volume", s.Volumes, env["KAFKA_LOG_DIRS"])
	}
	if len(s.Ports) != 1 || s.Ports[0].HostIP != "127.0.0.1" || s.Ports[0].Target != 9094 {
		t.Errorf("ports %+v: want the plant's listener alone, on loopback until an address is named", s.Ports)
	}
	heap := regexp.MustCompile(`^-Xms(\d)g -Xmx(\d)g$`).FindStringSubmatch(*env["KAFKA_HEAP_OPTS"])
	if heap == nil || heap[1] != heap[2] || (int64(heap[1][0]-'0')+1)<<30 > int64(s.MemLimit) {
		t.Errorf("a heap of %s does not fit into %d bytes", *env["KAFKA_HEAP_OPTS"], s.MemLimit)
	}
}

// The plant's address, once it is named, is where Kafka listens and what it tells clients to use.
func TestPlantAddress(t *testing.T) {
	options, err := cli.NewProjectOptions([]string{"../docker-compose.yml"}, cli.WithName("flank"), cli.WithEnv([]string{"FLANK_PLANT_ADDRESS=10.1.2.3"}))
	if err != nil {
		t.Fatal(err)
	}
	p, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := p.Services["kafka"]
	if said := *s.Environment["KAFKA_ADVERTISED_LISTENERS"]; s.Ports[0].HostIP != "10.1.2.3" || !strings.HasSuffix(said, ",PLANT://10.1.2.3:9094") {
		t.Errorf("listens on %s and says %s", s.Ports[0].HostIP, said)
	}
}

// Health checks ask the ports that the configurations name, and the retraining service starts only when it is asked for.
func TestHealthChecks(t *testing.T) {
	p := load(t)
	for name, port := range map[string]string{"ingest": ":9101", "monitor": ":9102"} {
		s := p.Services[name]
		c := configuration(t, s)
		serves := cmp.Or(c.Page, c.Metrics)
		if want := []string{"CMD", name, "--health", "http://127.0.0.1" + port + "/livez"}; !slices.Equal([]string(s.HealthCheck.Test), want) || serves != "0.0.0.0"+port {
			t.Errorf("%s: asks %v, serves on %s", name, s.HealthCheck.Test, serves)
		}
	}
	if s := p.Services["retrain"]; !slices.Equal(s.Profiles, []string{"retrain"}) {
		t.Errorf("retrain is in the profiles %v", s.Profiles)
	}
	file, _ := onHost(t, p.Services["retrain"], argument(t, p.Services["retrain"], "--config"))
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

// All data is bounded. The sizes in the comment at the top of docker-compose.yml follow from the
// settings.
func TestDiskIsBounded(t *testing.T) {
	p := load(t)
	text, err := os.ReadFile("../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	env := p.Services["kafka"].Environment.Resolve(func(string) (string, bool) { return "", false })
	number := func(text string) float64 {
		t.Helper()
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || n <= 0 {
			t.Fatalf("%q is not a bound: %v", text, err)
		}
		return n
	}
	setting := func(name string) float64 {
		t.Helper()
		if env[name] == nil {
			t.Fatalf("%s is not set: without it a topic grows", name)
		}
		return number(*env[name])
	}
	keep := configuration(t, p.Services["topics"]).Retain
	byBroker := 0.0 // topics that the broker's own limit bounds
	for _, topic := range bus.Planned(1) {
		switch bytes := topic.Settings["retention.bytes"]; {
		case strings.Contains(topic.Settings["cleanup.policy"], "compact"):
		case bytes == "":
			byBroker++
		case !slices.Contains([]string{bus.TopicWindows, bus.TopicFeatures, bus.TopicDead, bus.TopicAudit}, topic.Name):
			t.Errorf("%s: %s bytes of a partition are in no line", topic.Name, bytes)
		}
	}
	gb := func(text string) float64 { return number(strings.TrimSuffix(text, "GB")) }
	partitions := number(argument(t, p.Services["topics"], "--partitions"))
	logs := 0.0
	for name, s := range p.Services {
		if s.Logging == nil || s.Logging.Driver != "json-file" || s.Logging.Options["max-size"] != "10m" || s.Logging.Options["max-file"] != "3" {
			t.Errorf("%s: logging %+v grows", name, s.Logging)
		}
		logs += 3 * 0.01
	}
	const segment = 1 + 1.0/8 // Kafka removes whole segments, each an eighth of the limit
	parts := []struct {
		name string
		gb   float64
	}{
		{"windows on Kafka", partitions * gb(keep.Windows.Bytes) * segment},
		{"features on Kafka", partitions * gb(keep.Features.Bytes) * segment},
		{"results, alerts,", byBroker * partitions * (setting("KAFKA_LOG_RETENTION_BYTES") + setting("KAFKA_LOG_SEGMENT_BYTES")) / 1e9},
		{"dead letters on Kafka", gb(keep.Dead.Bytes) * segment},
		{"audit on Kafka", 0.5 * segment}, // its settings as bus.Planned has them
		{"state, models, labels,", (partitions + 2 + setting("KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS") + setting("KAFKA_TRANSACTION_STATE_LOG_NUM_PARTITIONS")) * 3 * (16 << 20) / 1e9},
		{"spool", 8192 * (1 << 20) / 1e9},
		{"evidence", evidence.DefaultKeep * 10 * 0.966e-3},
		{"history of the page", 10 * 16e-3},            // ten machines; docs/concepts/history.md says how large one is
		{"metrics of Prometheus", 2 * (1 << 30) / 1e9}, // TestMonitoring checks the flag
		{"logs of the containers", logs},
	}
	sum := 0.0
	for _, part := range parts {
		line := regexp.MustCompile(`(?m)^#   ` + part.name + ` +([0-9.]+) GB `).FindStringSubmatch(string(text))
		if line == nil {
			t.Errorf("docker-compose.yml has no line on %s: %.1f GB", part.name, part.gb)
			continue
		}
		if said := number(line[1]); said < part.gb-0.1 || said > part.gb+0.1 {
			t.Errorf("%s: docker-compose.yml says %v GB, the settings come to %.2f", part.name, said, part.gb)
		}
		sum += part.gb
	}
	if said := regexp.MustCompile(`at most ([0-9]+) GB of disk`).FindStringSubmatch(string(text)); said == nil || number(said[1]) < sum {
		t.Errorf("docker-compose.yml says %q, the settings come to %.1f GB", said, sum)
	}
}

// argument returns the value of a flag of a command line.
func argument(t *testing.T, s types.ServiceConfig, flag string) string {
	t.Helper()
	i := slices.Index(s.Command, flag)
	if i < 0 || i+1 == len(s.Command) {
		t.Fatalf("%s: no %s in %q", s.Name, flag, s.Command)
	}
	return s.Command[i+1]
}

// onHost returns the file on this machine that a path in the container of s
// is, or where the path lies on a volume.
func onHost(t *testing.T, s types.ServiceConfig, path string) (file, volume string) {
	t.Helper()
	for _, v := range s.Volumes {
		rest, below := strings.CutPrefix(path, v.Target+"/")
		switch {
		case !below:
		case v.Type == types.VolumeTypeBind:
			if !v.ReadOnly {
				t.Errorf("%s: %s can be written", s.Name, v.Source)
			}
			return filepath.Join(v.Source, rest), ""
		case v.Type == types.VolumeTypeVolume:
			return "", v.Source + "/" + rest
		}
	}
	t.Fatalf("%s: nothing is mounted at %s", s.Name, path)
	return "", ""
}

// configuration returns the values of the configuration that s is given.
// Whether its keys are known is tested with the programs.
func configuration(t *testing.T, s types.ServiceConfig) (values struct {
	Kafka  struct{ Brokers []string }
	Retain struct {
		Windows  struct{ Bytes string }
		Features struct{ Bytes string }
		Dead     struct{ Bytes string } `yaml:"dead_letters"`
	}
	Model   string
	Spool   string
	Page    string
	Metrics string
}) {
	t.Helper()
	file, _ := onHost(t, s, argument(t, s, "--config"))
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%s: %v", s.Name, err)
	}
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return values
}

// The mounted files exist. Their address of Kafka, path of the model and port of the page agree
// with the services.
func TestConfigurations(t *testing.T) {
	p := load(t)
	for _, name := range []string{"topics", "ingest", "monitor"} {
		if brokers := configuration(t, p.Services[name]).Kafka.Brokers; !slices.Equal(brokers, []string{"kafka:9092"}) {
			t.Errorf("%s: brokers %v", name, brokers)
		}
	}
	ingest, monitor, trainer := p.Services["ingest"], p.Services["monitor"], p.Services["trainer"]
	if _, at := onHost(t, ingest, configuration(t, ingest).Spool); !strings.HasPrefix(at, "data/") {
		t.Errorf("the spool is at %q", at)
	}
	_, read := onHost(t, monitor, configuration(t, monitor).Model)
	if _, written := onHost(t, trainer, argument(t, trainer, "--model")); read != written || read == "" {
		t.Errorf("the trainer writes %q, the monitor reads %q", written, read)
	}
	if len(monitor.Ports) != 1 || monitor.Ports[0].HostIP != "127.0.0.1" || monitor.Ports[0].Published != "9102" ||
		monitor.Ports[0].Target != 9102 || configuration(t, monitor).Page != "0.0.0.0:9102" {
		t.Errorf("ports %+v, page %q: want the page on this machine's port 9102 only", monitor.Ports, configuration(t, monitor).Page)
	}
	for _, name := range []string{"topics", "ingest", "trainer"} {
		if ports := p.Services[name].Ports; len(ports) > 0 {
			t.Errorf("%s publishes %v", name, ports)
		}
	}
	if got := slices.Sorted(maps.Keys(p.Volumes)); !slices.Equal(got, []string{"data", "grafana", "kafka", "prometheus"}) {
		t.Errorf("volumes %v", got)
	}
}

// The image holds every program of the services in a folder of the PATH. /data belongs to the
// user of the services.
func TestImage(t *testing.T) {
	text, err := os.ReadFile("../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	p := load(t)
	for _, name := range ours {
		program := p.Services[name].Command[0]
		if !strings.Contains(string(text), " ./cmd/"+program) || !regexp.MustCompile(`COPY .*/out/`+program+` .*/usr/local/bin/`).Match(text) {
			t.Errorf("the Dockerfile does not build %s into /usr/local/bin", program)
		}
	}
	if !strings.Contains(string(text), "--chown=65532:65532 /out/data /data") {
		t.Error("/data of the image does not belong to the user of the services")
	}
}

// built is the folder of the programs, built once for all tests: the one that FLANK_PROGRAMS names, where Go links
// only what has changed, or one that TestMain removes.
var built = sync.OnceValues(func() (string, error) {
	dir, keep := os.LookupEnv("FLANK_PROGRAMS")
	if !keep {
		var err error
		if dir, err = os.MkdirTemp("", "flank-deploy-"); err != nil {
			return "", err
		}
		builtIn = dir
	}
	out, err := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "../cmd/ingest", "../cmd/trainer", "../cmd/monitor").CombinedOutput()
	if err != nil {
		return dir, fmt.Errorf("%w\n%s", err, out)
	}
	return dir, nil
})

// builtIn is the folder to remove at the end.
var builtIn string

func TestMain(m *testing.M) {
	code := m.Run()
	if builtIn != "" {
		_ = os.RemoveAll(builtIn)
	}
	os.Exit(code)
}

// programs returns what says whether a program understands a command line. With --help a program reads all its
// flags first.
func programs(t *testing.T) (understood func(command []string) (help string, ok bool)) {
	t.Helper()
	if testing.Short() {
		t.Skip("links three programs")
	}
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return func(command []string) (string, bool) {
		cmd := exec.Command(filepath.Join(dir, command[0]), append(command[1:len(command):len(command)], "--help")...)
		cmd.Env = append(os.Environ(), "TCM_CONFIG=named.yaml")
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		err := cmd.Run()
		return out.String(), err == nil
	}
}

// The programs understand every command line.
func TestCommandLines(t *testing.T) {
	understood := programs(t)
	p := load(t)
	for _, name := range ours {
		command := p.Services[name].Command
		out, ok := understood(command)
		verbs := strings.Join(command[:slices.IndexFunc(command, func(s string) bool { return strings.HasPrefix(s, "--") })], " ")
		if !ok || !strings.HasPrefix(out, "Usage: "+verbs+" ") {
			t.Errorf("%s: %q: %s", name, command, out)
		}
		if _, ok := understood(append(command[:len(command):len(command)], "--no-such-flag")); ok {
			t.Errorf("%s takes any flag, so the test shows nothing", name)
		}
	}
}
