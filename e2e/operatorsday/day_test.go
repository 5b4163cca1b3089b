//go:build e2e

// Package operatorsday runs the commands of docs/how-to/operators-day.md on one computer. Each host of the page is a
// folder that begins as this computer's files and takes its own changes (overlayfs), with an address of its own on
// loopback. Packages are installed there by apt and dpkg. What is in for systemd, scp and Kafka's scripts is in testdata.
package operatorsday

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
)

// patience is how long a block may take to print what the page shows. It does not measure speed.
const patience = 6 * time.Minute

// hosts are the page's, with their addresses.
var hosts = map[string]string{
	"kafka1": "127.0.1.1", "kafka2": "127.0.1.2", "kafka3": "127.0.1.3", "gateway1": "127.0.2.1", "gateway2": "127.0.2.2",
	"monitor1": "127.0.3.1", "monitor2": "127.0.3.2", "desk": "127.0.4.1",
}

// replaced is what differs between the page and the commands that run: the package is one of this computer's processor.
var replaced = strings.NewReplacer("_amd64.deb", "_"+runtime.GOARCH+".deb")

// plant is the hosts.
type plant struct {
	t    *testing.T
	dir  string
	left []block         // of the page that have not run
	seen map[string]bool // windows that Kafka had before the disks of the brokers were lost
}

func (p *plant) root(host string) string { return filepath.Join(p.dir, host, "root") }

func (p *plant) sh(text string, args ...string) {
	p.t.Helper()
	if out, err := exec.Command("bash", append([]string{"-euc", text, "plant"}, args...)...).CombinedOutput(); err != nil {
		p.t.Fatalf("%v\n%s%s", err, text, out)
	}
}

// build makes the folders of the hosts. There is no network, so apt need not read what it could fetch, which takes a second each
// time; an index of all manuals, which Debian renews after each install, takes three.
func (p *plant) build(packages, kafka, prometheus string) {
	names := "127.0.0.1 localhost\n"
	for name, addr := range hosts {
		names += addr + " " + name + "\n"
	}
	file := filepath.Join(p.dir, "hosts")
	if err := os.WriteFile(file, []byte(names), 0o644); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Chmod(p.dir, 0o755); err != nil {
		p.t.Fatal(err)
	}
	p.sh(`mount --bind "$1" /etc/hosts`, file)
	for name := range hosts {
		p.sh(`umask 022
here=$PWD/testdata
mkdir -p "$1"/{upper,work,root}
mount -t overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" overlay "$1/root"
cd "$1/root"
rm -rf run/* && mkdir -p run/systemd/system run/stand-in dev proc sys tmp root backup
for d in tmp run/lock dev; do mkdir -p "$d"; mount -t tmpfs tmpfs "$d"; done
for n in null:3 zero:5 full:7 random:8 urandom:9; do mknod -m 666 "dev/${n%:*}" c 1 "${n#*:}"; done
ln -s /proc/self/fd dev/fd
mount -t proc proc proc
rm -f etc/hosts && cp "$2" etc/hosts
cp --remove-destination "$here"/{systemctl,journalctl,scp} usr/bin/
mkdir -p opt/kafka/bin etc/systemd/system ".$4"
mount --bind "$4" ".$4"
mount -o remount,ro,bind ".$4"
ln -s "$4/lib" opt/kafka/lib
cp "$here/log4j2.properties" "$here/../../../scripts/kafka/compiler.json" opt/kafka/
cp "$here/kafka.service" etc/systemd/system/
for s in server-start storage acls topics; do cp "$here/kafka-tool" "opt/kafka/bin/kafka-$s.sh"; done
cp "$3"/*/*.deb root/
rm -rf var/lib/man-db/auto-update var/lib/apt/lists/*`, filepath.Join(p.dir, name), file, packages, kafka)
	}
	p.sh(`cd "$1"
for host in kafka1 kafka2 kafka3 gateway1 gateway2 monitor1 monitor2; do
  mkdir -p "desk/root/run/hosts/$host"
  mount --rbind "$host/root" "desk/root/run/hosts/$host"
done
tar -C "$2" -c . | tar -C desk/root -x --keep-directory-symlink --no-same-owner
chroot desk/root useradd --system --user-group --no-create-home prometheus
mkdir -p desk/root/var/lib/prometheus
chroot desk/root chown -R prometheus: /var/lib/prometheus`, p.dir, prometheus)
}

// command returns a shell on a host.
func (p *plant) command(ctx context.Context, host, text string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "unshare", "--uts", "sh", "-c", `hostname "$1" && exec chroot "$2" bash -eu -o pipefail -c 'cd && eval "$0"' "$3"`, "sh", host, p.root(host), text)
	cmd.Env = []string{"HOME=/root", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive", "PATH=/usr/local/bin:/opt/kafka/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// missing returns the first of the lines that is not in the output, in their order.
func missing(output string, lines []string) (string, bool) {
	for _, line := range lines {
		i := strings.Index(output, line)
		if i < 0 {
			return line, true
		}
		output = output[i+len(line):]
	}
	return "", false
}

// runOn runs a block on a host. Services that it starts must not hold its output open, so that goes to a file.
func (p *plant) runOn(ctx context.Context, b block, host string) error {
	for {
		file, err := os.CreateTemp(p.dir, "output-")
		if err != nil {
			return err
		}
		cmd := p.command(ctx, host, replaced.Replace(b.text))
		cmd.Stdout, cmd.Stderr = file, file
		err = cmd.Run()
		_ = file.Close()
		out, _ := os.ReadFile(file.Name())
		line, miss := missing(string(out), b.prints)
		switch {
		case err == nil && !miss:
			return nil
		case miss && (err == nil || len(b.prints) > 0):
			err = fmt.Errorf("the page shows %q, and this is not printed (%v)", line, err)
		}
		err = fmt.Errorf("%s:%d on %s: %w\n%s%s", page, b.line, host, err, b.text, out)
		if !b.wait {
			return err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return err
		}
	}
}

// run runs a block on all its hosts at the same time.
func (p *plant) run(b block) {
	p.t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	errs := make([]error, len(b.hosts))
	var all sync.WaitGroup
	for i, host := range b.hosts {
		all.Go(func() { errs[i] = p.runOn(ctx, b, host) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		p.logs()
		p.t.Fatal(err)
	}
	p.report("run", b)
	p.t.Logf("line %d: %.1f s", b.line, time.Since(began).Seconds())
	p.left = p.left[1:]
}

// report says of each command of a block what became of it.
func (p *plant) report(what string, b block) {
	for _, c := range b.commands() {
		p.t.Logf("%s on %s: %s%s", what, strings.Join(b.hosts, ", "), c.shown, c.standsIn)
	}
}

// logs prints the ends of the services' logs.
func (p *plant) logs() {
	paths, _ := filepath.Glob(filepath.Join(p.dir, "*", "root", "run", "stand-in", "*.log"))
	for _, path := range paths {
		text, _ := os.ReadFile(path)
		p.t.Logf("%s:\n%s", strings.TrimPrefix(path, p.dir), text[max(0, len(text)-1500):])
	}
}

// bus returns the settings of an administrator who reads topics.
func (p *plant) bus() bus.Config {
	desk := filepath.Join(p.root("desk"), "root", "plant")
	return bus.Config{
		Brokers: []string{"kafka1:9093", "kafka2:9093", "kafka3:9093"}, ClientID: "operatorsday",
		TLS:   &bus.TLS{TLS: credential.TLS{CA: filepath.Join(desk, "ca.pem")}},
		Login: &credential.Login{User: "admin", PasswordFile: filepath.Join(desk, "admin.password")},
	}
}

// windows returns the ids of the windows that Kafka has.
func (p *plant) windows() map[string]bool {
	p.t.Helper()
	all := map[string]bool{}
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	if err := bus.ReadTopic(ctx, p.bus(), bus.TopicWindows, bus.FirstOffset, false, func(m bus.Message) error {
		if envelope.IsLedger(&m) {
			return nil
		}
		all[string(m.Header("ce_id"))] = true
		return nil
	}); err != nil {
		p.logs()
		p.t.Fatal(err)
	}
	return all
}

// results returns the ids of the results of each window.
func (p *plant) results() map[string][]string {
	p.t.Helper()
	all := map[string][]string{}
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	if err := bus.ReadTopic(ctx, p.bus(), bus.TopicResults, bus.FirstOffset, false, func(m bus.Message) error {
		var r event.Result
		if err := json.Unmarshal(m.Value, &r); err != nil {
			return err
		}
		at := event.WindowID(r.Machine, r.Epoch, r.Seq)
		if !slices.Contains(all[at], r.ID) {
			all[at] = append(all[at], r.ID)
		}
		return nil
	}); err != nil {
		p.logs()
		p.t.Fatal(err)
	}
	return all
}

// until waits for something that the test counts.
func (p *plant) until(what string, ok func() bool) {
	p.t.Helper()
	for began := time.Now(); !ok(); time.Sleep(time.Second) {
		if time.Since(began) > patience {
			p.logs()
			p.t.Fatalf("still waiting for %s", what)
		}
	}
}

// judged waits until so many more windows of each gateway are judged.
func (p *plant) judged(more int) {
	p.t.Helper()
	count := func() map[string]int {
		n := map[string]int{}
		for at := range p.results() {
			for _, g := range []string{"gateway1", "gateway2"} {
				if strings.Contains(at, g) {
					n[g]++
				}
			}
		}
		return n
	}
	before := count()
	p.until(fmt.Sprintf("%d more results of each gateway", more), func() bool {
		now := count()
		return now["gateway1"] >= before["gateway1"]+more && now["gateway2"] >= before["gateway2"]+more
	})
}

// The hooks run after the commands of a part of the page.
var hooks = map[string]func(*plant){
	"Set up the gateways and monitors": func(p *plant) { p.judged(5) },
	"Upgrade":                          func(p *plant) { p.judged(5) },
	"Lose a broker":                    func(p *plant) { p.judged(5) },
	"Fill a disk":                      func(p *plant) { p.judged(5) },
	"Let a certificate expire":         func(p *plant) { p.judged(5) },
	"Back up":                          func(p *plant) { p.judged(5); p.seen = p.windows() },
	"Restore":                          checkRestored,
}

// checkRestored waits until each window that Kafka ever had has its one result.
func checkRestored(p *plant) {
	p.until("results of all windows", func() bool {
		results := p.results()
		for w := range p.seen {
			if len(results[w]) == 0 {
				return false
			}
		}
		return true
	})
	for w, ids := range p.results() {
		if len(ids) != 1 {
			p.t.Errorf("window %s has %d results", w, len(ids))
		}
	}
	p.t.Logf("%d windows before the brokers lost their disks, each with one result", len(p.seen))
	if len(p.seen) < 50 {
		p.t.Errorf("%d windows only", len(p.seen))
	}
}

// grafana checks what Grafana would read.
func (p *plant) grafana() {
	etc := filepath.Join(p.root("desk"), "etc", "grafana")
	for _, name := range []string{"provisioning/datasources/prometheus.yaml", "provisioning/dashboards/flank.yaml"} {
		text, err := os.ReadFile(filepath.Join(etc, name))
		if err != nil || name == "provisioning/datasources/prometheus.yaml" && !bytes.Contains(text, []byte("url: http://desk:9090\n")) {
			p.t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
	for _, name := range []string{"fleet", "machine", "pipeline"} {
		text, err := os.ReadFile(filepath.Join(etc, "dashboards", "flank-"+name+".json"))
		if err != nil || !json.Valid(text) {
			p.t.Errorf("dashboard %s: %v", name, err)
		}
	}
}

// From the package to the restore: every command of the page, in its order.
func TestOperatorsDay(t *testing.T) {
	packages, kafka, prometheus := os.Getenv("FLANK_DAY_PACKAGES"), os.Getenv("FLANK_DAY_KAFKA"), os.Getenv("FLANK_DAY_PROMETHEUS")
	if packages == "" || kafka == "" || prometheus == "" {
		t.Skip("run make operators-day, which makes packages and gives the test mounts and a network of its own")
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "flank-day-") // not t.TempDir, whose end would follow mounts
	if err != nil {
		t.Fatal(err)
	}
	p := &plant{t: t, dir: dir}
	t.Cleanup(func() {
		p.sh(`for f in "$1"/*/root/run/stand-in/*; do
  case $f in *.pid | *.main) kill -KILL "$(cat "$f")" 2>/dev/null || true ;; esac
done
awk -v dir="$1/" 'index($2, dir) == 1 {print $2}' /proc/mounts | sort -r | while read -r m; do umount -l "$m" || true; done
rm -rf --one-file-system "$1"`, dir)
	})
	p.build(packages, kafka, prometheus)
	line, did := 1, map[string]bool{}
	all := blocks(string(text))
	p.left = all
	t.Cleanup(func() {
		for _, b := range p.left {
			p.report("NOT RUN, because a command before it failed,", b)
		}
	})
	for _, b := range all {
		for _, h := range b.hosts {
			if hosts[h] == "" {
				t.Fatalf("%s:%d: no host %s", page, b.line, h)
			}
		}
		if len(b.hosts) == 0 {
			t.Fatalf("%s:%d: the block does not say which hosts it is for", page, b.line)
		}
	}
	for part := range strings.SplitSeq(string(text), "\n## ") {
		title, _, _ := strings.Cut(part, "\n")
		if _, name, ok := strings.Cut(title, ". "); ok {
			title = name
		}
		end := line + strings.Count(part, "\n") + 1
		for _, b := range all {
			if b.line >= line && b.line < end {
				p.run(b)
			}
		}
		if hook := hooks[title]; hook != nil {
			hook(p)
			did[title] = true
		}
		line = end
	}
	p.grafana()
	if len(did) != len(hooks) {
		t.Errorf("the page has the parts %v", did)
	}
}
