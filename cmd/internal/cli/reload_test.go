package cli

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
)

// logLines is a log that says when a text was written to it.
type logLines struct {
	mu   sync.Mutex
	text strings.Builder
	said chan string
}

func (l *logLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(b)
	l.said <- string(b)
	return len(b), nil
}

// A program goes on with another configuration, once the run before has ended, and with the old one where
// the new one is the same or cannot be used.
func TestReloading(t *testing.T) {
	hup, began, ends := make(chan os.Signal), make(chan string), make(chan error)
	log := &logLines{said: make(chan string, 10)}
	config, refused := "a", error(nil)
	result := make(chan error)
	running := 0
	var read []error // why each configuration that was read again is not used; nil if it is
	go func() {
		result <- reloading(t.Context(), hup, zerolog.New(log), func() (string, error) { return config, refused }, func(err error) { read = append(read, err) }, func(ctx context.Context, c string, _ func(func() error)) error {
			running++
			if running != 1 {
				t.Error("two runs at the same time")
			}
			defer func() { running-- }()
			began <- c
			select {
			case err := <-ends:
				return err
			case <-ctx.Done():
				return nil
			}
		})
	}()
	if got := <-began; got != "a" {
		t.Fatalf("began with %q", got)
	}
	ask := func(want string) {
		t.Helper()
		hup <- syscall.SIGHUP
		if got := <-log.said; !strings.Contains(got, want) {
			t.Errorf("log %q, want %q", got, want)
		}
	}
	ask("has not changed")
	config, refused = "b", errors.New("ingest.yaml:3: no such key")
	ask("going on with the old one")
	refused = nil
	hup <- syscall.SIGHUP
	if got := <-began; got != "b" {
		t.Errorf("goes on with %q", got)
	}
	ends <- nil // the source has ended
	if err := <-result; err != nil {
		t.Errorf("ended with %v", err)
	}
	if len(read) != 2 || read[0] == nil || read[1] != nil {
		t.Errorf("configurations that were read again: %v", read)
	}
}

// A program whose run with another configuration fails before it was ready goes on with the one before: the
// last one with which it was ready, or else the first one.
func TestReloadingGoesBack(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	for name, tc := range map[string]struct {
		steps []string // the configuration at the start, and at each SIGHUP, and SIGTERM
		want  []string // runs, and what read was called with
		err   string   // a part of the error; empty: none
	}{
		"address taken": {
			[]string{"a works", "b fails", "SIGTERM"},
			[]string{"run a works", "read", "run b fails", "run a works", "read b fails"}, "",
		},
		"fails after a minute of waiting": {
			[]string{"a works", "b waits a minute", "", "SIGTERM"},
			[]string{"run a works", "read", "run b waits a minute", "run a works", "read b waits a minute"}, "",
		},
		"the same file again": {
			[]string{"a works", "b fails", "b fails", "c works", "SIGTERM"},
			[]string{"run a works", "read", "run b fails", "run a works", "read b fails", "read", "run b fails", "run a works", "read b fails", "read", "run c works"}, "",
		},
		"the first one was never ready": {
			[]string{"a waits", "b fails", "SIGTERM"},
			[]string{"run a waits", "read", "run b fails", "run a waits", "read b fails"}, "",
		},
		"two in a row, the first not ready yet": {
			[]string{"a works", "b waits", "c fails", "SIGTERM"},
			[]string{"run a works", "read", "run b waits", "read", "run c fails", "run a works", "read c fails"}, "",
		},
		"two in a row, the first fails as it makes room": {
			[]string{"a works", "b breaks", "c works", "SIGTERM"},
			[]string{"run a works", "read", "run b breaks", "read", "run c works"}, "",
		},
		"at the start": {[]string{"a fails"}, []string{"run a fails"}, "a fails"},
		"at the start, which fails as it makes room": {
			[]string{"a breaks", "b works", "SIGTERM"},
			[]string{"run a breaks", "read", "run b works"}, "",
		},
		"two in a row, the first ready as it makes room": {
			[]string{"a works", "b is late", "c fails", "", "SIGTERM"},
			[]string{"run a works", "read", "run b is late", "read", "run c fails", "run a works", "read c fails"}, "",
		},
		"another one while it goes back": {
			[]string{"a works, then breaks", "b fails", "c works", "SIGTERM"},
			[]string{"run a works, then breaks", "read", "run b fails", "run a works, then breaks", "read b fails", "read", "run c works"}, "",
		},
		"ready once, then it fails": {
			[]string{"a works", "b works a minute", ""},
			[]string{"run a works", "read", "run b works a minute"}, "b works a minute",
		},
		"ready, and fails as it makes room": {
			[]string{"a works", "b ends badly", "c works"},
			[]string{"run a works", "read", "run b ends badly", "read"}, "b ends badly",
		},
		"the one before fails too": {
			[]string{"a works, then fails", "b fails"},
			[]string{"run a works, then fails", "read", "run b fails", "run a works, then fails", "read b fails"}, "with the new configuration: b fails; with the one before: a works, then fails",
		},
		"the one before works again, and fails later": {
			[]string{"a works, then a minute", "b fails", ""},
			[]string{"run a works, then a minute", "read", "run b fails", "run a works, then a minute", "read b fails"}, "a works, then a minute",
		},
		"the end in a run that fails": {
			[]string{"a works", "b breaks", "SIGTERM"},
			[]string{"run a works", "read", "run b breaks"}, "b breaks",
		},
		"the end in a run that is not ready": {
			[]string{"a works", "b waits", "SIGTERM"},
			[]string{"run a works", "read", "run b waits"}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				hup, result := make(chan os.Signal, 1), make(chan error, 1)
				var mu sync.Mutex
				var file string
				var got []string
				note := func(text string) {
					mu.Lock()
					defer mu.Unlock()
					got = append(got, text)
				}
				runs := make(map[string]int)
				audited := false // by the run that is running
				file = tc.steps[0]
				load := func() (string, error) {
					mu.Lock()
					defer mu.Unlock()
					return file, nil
				}
				read := func(err error) {
					if err == nil {
						note("read")
						return
					}
					if !audited && !strings.Contains(tc.err, "one before") {
						t.Errorf("read %v: before the run has its audit", err)
					}
					note("read " + err.Error())
				}
				run := func(ctx context.Context, c string, watch func(func() error)) error {
					note("run " + c)
					defer func() { audited = false }()
					first, then, _ := strings.Cut(c, ", then ")
					_, does, _ := strings.Cut(first, " ")
					if runs[c]++; runs[c] > 1 && then != "" {
						does = then
					}
					ready := func() error { return nil }
					failed := errors.New(c)
					switch does {
					case "fails":
						return failed
					case "waits", "waits a minute", "breaks":
						ready = func() error { return errors.New("waits") }
					case "is late":
						<-ctx.Done()
						watch(ready)
						time.Sleep(2 * notifyEvery)
						return nil
					}
					audited = true
					watch(ready)
					if strings.HasSuffix(does, "a minute") {
						time.Sleep(time.Minute)
						return failed
					}
					<-ctx.Done()
					if does == "breaks" || does == "ends badly" {
						return failed
					}
					return nil
				}
				go func() { result <- reloading(ctx, hup, zerolog.Nop(), load, read, run) }()
				for _, step := range tc.steps[1:] {
					time.Sleep(2 * notifyEvery)
					switch step {
					case "":
						time.Sleep(2 * time.Minute)
					case "SIGTERM":
						cancel()
					default:
						mu.Lock()
						file = step
						mu.Unlock()
						hup <- syscall.SIGHUP
					}
				}
				var err error
				select {
				case err = <-result:
				case <-time.After(time.Hour):
					t.Error("the program does not end")
				}
				cancel()
				if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
					t.Errorf("ended with %v, want %q", err, tc.err)
				}
				if !slices.Equal(got, tc.want) {
					t.Errorf("the program did\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
				}
			})
		})
	}
}

// Where systemd started the program, it hears that a program with another configuration reloads, and is
// ready again when that one is, or when the one before is again. It hears of the end only when the program ends.
func TestReloadingUnderSystemd(t *testing.T) {
	next := systemd(t)
	t.Setenv("WATCHDOG_USEC", "3000000")
	hup, result := make(chan os.Signal), make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	config, began, ends := 0, make(chan int), make(chan error)
	go func() {
		result <- reloading(ctx, hup, zerolog.Nop(), func() (int, error) { config++; return config, nil }, func(error) {}, func(ctx context.Context, c int, watch func(func() error)) error {
			began <- c
			if c == 5 {
				watch(func() error { return errors.New("waiting for Kafka") })
				return errors.New("the address is taken")
			}
			watch(func() error { return nil })
			<-ctx.Done()
			return <-ends
		})
	}()
	hear := func(want string) {
		t.Helper()
		got := next()
		for got == "WATCHDOG=1" {
			got = next()
		}
		if !strings.HasPrefix(got, want) {
			t.Fatalf("the program says %q, want %q", got, want)
		}
	}
	hear("STATUS=starting")
	<-began
	hear("READY=1")
	hear("STATUS=ready")
	for range 3 {
		hup <- syscall.SIGHUP
		hear("RELOADING=1\nMONOTONIC_USEC=")
		hear("STATUS=reloading")
		if got := next(); got != "WATCHDOG=1" {
			t.Fatalf("while the run before ends, the program says %q, and no sign of life", got)
		}
		ends <- nil
		<-began
		hear("READY=1")
		hear("STATUS=ready")
	}
	hup <- syscall.SIGHUP
	hear("RELOADING=1\nMONOTONIC_USEC=")
	hear("STATUS=reloading")
	ends <- nil
	if failed, again := <-began, <-began; failed != 5 || again != 4 {
		t.Errorf("ran with %d, then with %d", failed, again)
	}
	for got := next(); got != "READY=1"; got = next() {
		if got != "WATCHDOG=1" && got != "STATUS=waiting for Kafka" {
			t.Fatalf("while it goes back, the program says %q", got)
		}
	}
	hear("STATUS=ready")
	cancel()
	hear("STOPPING=1")
	ends <- nil
	if err := <-result; err != nil {
		t.Error(err)
	}
}

// A configuration that cannot be used at the start ends the program.
func TestReloadingFails(t *testing.T) {
	bad := errors.New("bad")
	if err := reloading(t.Context(), nil, zerolog.Nop(), func() (int, error) { return 0, bad }, func(err error) { t.Errorf("read again: %v", err) }, func(context.Context, int, func(func() error)) error { t.Error("runs"); return nil }); !errors.Is(err, bad) {
		t.Errorf("%v", err)
	}
}
