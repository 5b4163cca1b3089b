package deploy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/testkit/golden"
)

// object is a resource of Kubernetes.
type object = map[string]any

func nameOf(o object) string {
	return fmt.Sprintf("%v/%v", o["kind"], at[string](o, "metadata", "name"))
}

// at returns what is below keys; the zero value if there is nothing.
func at[T any](of any, keys ...string) (v T) {
	for _, k := range keys {
		m, ok := of.(object)
		if !ok {
			return v
		}
		of = m[k]
	}
	v, _ = of.(T)
	return v
}

// resources reads the resources that the kustomizations name, by their kind and name.
func resources(t *testing.T, folders ...string) map[string]object {
	t.Helper()
	all := map[string]object{}
	for _, folder := range folders {
		k := kustomization(t, folder)
		for _, file := range k.Resources {
			text, err := os.ReadFile(filepath.Join("kubernetes", folder, file))
			if err != nil {
				t.Fatal(err)
			}
			for dec := yaml.NewDecoder(bytes.NewReader(text)); ; {
				var o object
				if err := dec.Decode(&o); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatalf("%s: %v", file, err)
				}
				if all[folder+" "+nameOf(o)] != nil {
					t.Errorf("%s: %s is there twice", file, nameOf(o))
				}
				all[folder+" "+nameOf(o)] = o
			}
		}
	}
	return all
}

type kustomize struct {
	Namespace          string
	Resources          []string
	ConfigMapGenerator []struct {
		Name  string
		Files []string
	} `yaml:"configMapGenerator"`
	Images []struct{ Name, NewName, NewTag string }
}

func kustomization(t *testing.T, folder string) (k kustomize) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("kubernetes", folder, "kustomization.yaml"))
	if err == nil {
		err = yaml.Unmarshal(text, &k)
	}
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// pods returns the templates of pods.
func pods(all map[string]object) map[string]map[string]any {
	found := map[string]map[string]any{}
	for name, o := range all {
		p := at[map[string]any](o, "spec", "template")
		if o["kind"] == "CronJob" {
			p = at[map[string]any](o, "spec", "jobTemplate", "spec", "template")
		}
		if p != nil {
			found[name] = p
		}
	}
	return found
}

// Every pod runs without rights, from our image, within bounds, and has probes if it runs for ever. Its command
// lines and its paths fit: what it mounts is there, and what its configuration names is mounted.
func TestPods(t *testing.T) {
	all := resources(t, "base", "gateway")
	templates := pods(all)
	if len(templates) != 4 {
		t.Fatalf("pods of %v: want gateway, judge, trainer, watch", slices.Sorted(maps.Keys(templates)))
	}
	for name, p := range templates {
		spec := at[map[string]any](p, "spec")
		if at[bool](spec, "securityContext", "runAsNonRoot") != true || at[string](spec, "securityContext", "seccompProfile", "type") != "RuntimeDefault" || at[bool](spec, "automountServiceAccountToken") {
			t.Errorf("%s: runs with rights that it does not need", name)
		}
		generated := map[string][]string{}
		for _, c := range kustomization(t, strings.Fields(name)[0]).ConfigMapGenerator {
			generated[c.Name] = c.Files
		}
		volumes := map[string]map[string]any{}
		for _, v := range at[[]any](spec, "volumes") {
			volumes[at[string](v, "name")] = v.(map[string]any)
		}
		for _, c := range at[[]any](spec, "containers") {
			if at[string](c, "image") != "flank" || at[string](c, "resources", "limits", "memory") == "" || at[string](c, "resources", "requests", "memory") == "" {
				t.Errorf("%s: not our image, or without bounds", name)
			}
			if sc := at[map[string]any](c, "securityContext"); sc["allowPrivilegeEscalation"] != false || sc["readOnlyRootFilesystem"] != true || fmt.Sprint(sc["capabilities"]) != "map[drop:[ALL]]" {
				t.Errorf("%s: %v", name, sc)
			}
			for _, probe := range []string{"startupProbe", "livenessProbe", "readinessProbe"} {
				if (at[map[string]any](c, probe) != nil) == strings.Contains(name, "CronJob") {
					t.Errorf("%s: %s", name, probe)
				}
			}
			checkMounts(t, name, c, volumes, generated)
		}
	}
}

// checkMounts checks the mounts of a container, and the configuration that it is given.
func checkMounts(t *testing.T, name string, container any, volumes map[string]map[string]any, generated map[string][]string) {
	t.Helper()
	var mounted []string
	var files []string
	for _, m := range at[[]any](container, "volumeMounts") {
		v := volumes[at[string](m, "name")]
		claimed := strings.Contains(name, "StatefulSet") && at[string](m, "name") == "data"
		if v == nil && !claimed {
			t.Errorf("%s: mounts %s, and has no such volume", name, at[string](m, "name"))
		}
		mounted = append(mounted, at[string](m, "mountPath")+"/")
		if at[string](m, "name") == "config" {
			files = generated[at[string](v, "configMap", "name")]
		}
	}
	if len(files) == 0 {
		t.Errorf("%s: has no configuration", name)
	}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join("kubernetes", strings.Fields(name)[0], f[strings.IndexByte(f, '=')+1:]))
		if err != nil {
			t.Fatal(err)
		}
		paths := regexp.MustCompile(`/(?:etc|var)/[\w./-]+`).FindAllString(string(text), -1)
		for _, path := range append(paths, commandPaths(container)...) {
			if !slices.ContainsFunc(mounted, func(m string) bool { return strings.HasPrefix(path, m) }) {
				t.Errorf("%s: %s is not mounted", name, path)
			}
		}
	}
}

func commandPaths(container any) (paths []string) {
	for _, word := range at[[]any](container, "command") {
		if s := word.(string); strings.HasPrefix(s, "/") {
			paths = append(paths, s)
		}
	}
	return paths
}

// The programs understand their command lines.
func TestKubernetesCommandLines(t *testing.T) {
	understood := programs(t)
	for name, p := range pods(resources(t, "base", "gateway")) {
		for _, c := range at[[]any](p, "spec", "containers") {
			var command []string
			for _, word := range at[[]any](c, "command") {
				command = append(command, word.(string))
			}
			if out, ok := understood(command); !ok {
				t.Errorf("%s: %q: %s", name, command, out)
			}
		}
	}
}

// Budgets, services and policies select pods that are there.
func TestSelectors(t *testing.T) {
	all := resources(t, "base", "gateway")
	labels := []string{}
	for _, p := range pods(all) {
		labels = append(labels, at[string](p, "metadata", "labels", "app.kubernetes.io/component"))
	}
	for name, o := range all {
		keys := map[string][]string{
			"PodDisruptionBudget": {"spec", "selector", "matchLabels"}, "Service": {"spec", "selector"}, "NetworkPolicy": {"spec", "podSelector", "matchLabels"},
			"Deployment": {"spec", "selector", "matchLabels"}, "StatefulSet": {"spec", "selector", "matchLabels"}, "DaemonSet": {"spec", "selector", "matchLabels"},
		}[fmt.Sprint(o["kind"])]
		if of := at[map[string]any](o, keys...); keys != nil && of["app.kubernetes.io/component"] != nil && !slices.Contains(labels, fmt.Sprint(of["app.kubernetes.io/component"])) {
			t.Errorf("%s selects %v; pods have %v", name, of, labels)
		}
	}
}

// partitionsOfTopics is how many partitions the topics have that go by machine, as `ingest topics apply --partitions 64` makes them.
const partitionsOfTopics = 64

// The topics for Strimzi agree with `ingest topics apply --partitions 64 --replication 3`: go test ./deploy -run Strimzi -update.
func TestStrimziTopics(t *testing.T) {
	var b strings.Builder
	b.WriteString("# The topics, for Strimzi's topic operator, as `ingest topics apply --partitions 64 --replication 3` makes them.\n# Made by deploy/kubernetes_test.go: go test ./deploy -run Strimzi -update\n")
	for i, topic := range bus.Planned(3) {
		if i > 0 {
			b.WriteString("---\n")
		}
		partitions := partitionsOfTopics
		if topic.Single {
			partitions = 1
		}
		fmt.Fprintf(&b, "apiVersion: kafka.strimzi.io/v1\nkind: KafkaTopic\nmetadata: {name: %s, labels: {strimzi.io/cluster: tcm}}\nspec:\n  partitions: %d\n  replicas: 3\n  config:\n", topic.Name, partitions)
		for _, key := range slices.Sorted(maps.Keys(topic.Settings)) {
			fmt.Fprintf(&b, "    %s: %q\n", key, topic.Settings[key])
		}
	}
	golden.Check(t, filepath.Join("..", "kubernetes", "strimzi", "topics.yaml"), b.String())
}

// The users for Strimzi have the rights of kafka/acls.md: for each user the same topics with the same operations.
func TestStrimziUsers(t *testing.T) {
	text, err := os.ReadFile("kafka/acls.md")
	if err != nil {
		t.Fatal(err)
	}
	all := resources(t, "strimzi")
	topic := regexp.MustCompile("`(tcm\\.[a-z]+\\.v1)`")
	want, user := map[string]bool{}, ""
	for _, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 5 || !strings.Contains(cells[2], "topic") {
			if len(cells) >= 5 && strings.TrimSpace(cells[1]) != "" {
				user = firstWord(cells[1])
			}
			continue
		}
		if strings.TrimSpace(cells[1]) != "" {
			user = firstWord(cells[1])
		}
		for _, m := range topic.FindAllStringSubmatch(cells[2], -1) {
			for _, op := range []string{"Read", "Write", "DescribeConfigs"} {
				if regexp.MustCompile(`\b` + op + `\b`).MatchString(strings.SplitN(cells[3], ";", 2)[0]) {
					want[user+" "+m[1]+" "+op] = true
				}
			}
		}
	}
	got := map[string]bool{}
	for _, name := range []string{"ingest", "monitor", "trainer", "operator"} {
		u := all["strimzi KafkaUser/"+name]
		for _, rule := range at[[]any](u, "spec", "authorization", "acls") {
			if at[string](rule, "resource", "type") != "topic" {
				continue
			}
			for _, op := range at[[]any](rule, "operations") {
				got[name+" "+at[string](rule, "resource", "name")+" "+op.(string)] = true
			}
		}
	}
	for right := range want {
		if slices.Contains([]string{"ingest", "monitor", "trainer", "operator"}, strings.Fields(right)[0]) && !got[right] {
			t.Errorf("users.yaml lacks %s, which acls.md grants", right)
		}
	}
	for right := range got {
		if !want[right] {
			t.Errorf("users.yaml grants %s, which acls.md does not", right)
		}
	}
}

// firstWord returns the name in backquotes at the start of a cell.
func firstWord(cell string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(cell), "`"), "`")
	return name
}
