package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The services run without rights, are told apart by ready and alive, and call the programs as they are.
func TestSystemdUnits(t *testing.T) {
	for _, program := range []string{"ingest", "monitor"} {
		text, err := os.ReadFile("systemd/flank-" + program + ".service")
		if err != nil {
			t.Fatal(err)
		}
		unit := string(text)
		for _, line := range []string{
			"Type=notify", "ExecStart=/usr/bin/" + program + " run --config /etc/flank/" + program + ".yaml", "ConditionPathExists=/etc/flank/" + program + ".yaml", "Restart=always", "ExecReload=/bin/kill -HUP $MAINPID",
			"User=flank", "UMask=0077", "StateDirectory=flank", "NoNewPrivileges=yes", "ProtectSystem=strict", "CapabilityBoundingSet=", "SystemCallFilter=@system-service", "WantedBy=multi-user.target",
		} {
			if !strings.Contains(unit, "\n"+line+"\n") {
				t.Errorf("%s: no %s", program, line)
			}
		}
		// The programs give three signs of life in this time.
		if m := regexp.MustCompile(`(?m)^WatchdogSec=(\d+)$`).FindStringSubmatch(unit); m == nil || m[1] != "60" {
			t.Errorf("%s: watchdog %v", program, m)
		}
	}
}

// The timers call trainer watch and trainer archive, which end, also after a time when the computer was off, and the services have no more rights than the others.
func TestTimers(t *testing.T) {
	dir := t.TempDir()
	for command, when := range map[string]string{"watch": "*-*-* 06:00", "archive": "hourly"} {
		for name, lines := range map[string][]string{
			"flank-" + command + ".service": {"Type=oneshot", "EnvironmentFile=-/etc/flank/" + command + ".env", "User=flank", "UMask=0077", "NoNewPrivileges=yes", "ProtectSystem=strict", "CapabilityBoundingSet="},
			"flank-" + command + ".timer":   {"OnCalendar=" + when, "Persistent=true", "WantedBy=timers.target"},
		} {
			text, err := os.ReadFile("systemd/" + name)
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range lines {
				if !strings.Contains(string(text), "\n"+line+"\n") {
					t.Errorf("%s: no %s", name, line)
				}
			}
			m := regexp.MustCompile(`(?m)^ExecStart=/usr/bin/(.*) \$` + strings.ToUpper(command) + "$").FindStringSubmatch(string(text))
			if (m == nil) == strings.HasSuffix(name, ".service") {
				t.Errorf("%s: starts %q", name, m)
			} else if m != nil && !testing.Short() { // it links the programs
				if out, ok := programs(t)(strings.Fields(m[1])); !ok || !strings.HasPrefix(out, "Usage: trainer "+command+" ") {
					t.Errorf("%s: %s", m[1], out)
				}
			}
			unit := regexp.MustCompile(`(?m)^Documentation=.*\n`).ReplaceAllString(strings.ReplaceAll(string(text), "/usr/bin/trainer", "/bin/true"), "")
			if err := os.WriteFile(filepath.Join(dir, name), []byte(unit), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("no systemd-analyze here")
	}
	if out, err := exec.Command("systemd-analyze", "verify", filepath.Join(dir, "flank-watch.timer"), filepath.Join(dir, "flank-archive.timer")).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

// systemd finds no mistake in the units, and little that they could still do without.
func TestSystemdAnalyze(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("no systemd-analyze here")
	}
	for _, name := range []string{"flank-ingest.service", "flank-monitor.service", "flank-watch.service", "flank-archive.service"} {
		text, err := os.ReadFile("systemd/" + name)
		if err != nil {
			t.Fatal(err)
		}
		// The programs and their pages are not installed here.
		unit := regexp.MustCompile(`(?m)^Documentation=.*\n`).ReplaceAllString(regexp.MustCompile(`/usr/bin/(ingest|monitor|trainer)`).ReplaceAllString(string(text), "/bin/true"), "")
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(unit), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("systemd-analyze", "verify", file).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		out, err := exec.Command("systemd-analyze", "security", "--offline=true", file).CombinedOutput()
		level := regexp.MustCompile(`Overall exposure level for \S+: ([0-9.]+)`).FindStringSubmatch(string(out))
		if err != nil || level == nil {
			t.Skipf("this systemd-analyze does not look at files: %v", err)
		}
		if n, err := strconv.ParseFloat(level[1], 64); err != nil || n > 1.5 {
			t.Errorf("%s: exposure %s of 10, want at most 1.5\n%s", name, level[1], out)
		}
	}
}
