package cli

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// profiled is a command that asks for its own profiles.
type profiled struct {
	Ask struct{ asking } `cmd:""`
}

type asking struct {
	stderr *bytes.Buffer
	got    map[string]int // status by path
	url    string
}

var profileURL = regexp.MustCompile(`http://\S+:\d+`)

func (a *asking) Run(Output) error {
	a.url = profileURL.FindString(a.stderr.String())
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap?debug=1", "/debug/pprof/goroutine?debug=1", "/debug/pprof/cmdline", "/debug/pprof/symbol", "/other"} {
		res, err := http.Get(a.url + path)
		if err != nil {
			return err
		}
		res.Body.Close()
		a.got[path] = res.StatusCode
	}
	req, err := http.NewRequest(http.MethodGet, a.url+"/debug/pprof/heap", nil)
	if err != nil {
		return err
	}
	req.Host = "evil.example:80"
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	res.Body.Close()
	a.got["of another name"] = res.StatusCode
	return nil
}

// A program answers with profiles while a command runs, at an address of this computer alone.
func TestProfiles(t *testing.T) {
	for _, args := range [][]string{{"ask", "--pprof", "127.0.0.1:0"}, {"--pprof=localhost:0", "ask"}} {
		addr := args[len(args)-1]
		var stderr bytes.Buffer
		var flags profiled
		flags.Ask.stderr, flags.Ask.got = &stderr, map[string]int{}
		if err := Run(t.Context(), &flags, "thing", "Do a thing.", args, io.Discard, &stderr); err != nil {
			t.Fatalf("%s: %v", addr, err)
		}
		for path, status := range flags.Ask.got {
			want := map[string]int{"/other": http.StatusNotFound, "of another name": http.StatusForbidden}[path]
			if want == 0 {
				want = http.StatusOK
			}
			if status != want {
				t.Errorf("%s: %s has status %d, want %d", addr, path, status, want)
			}
		}
		if len(flags.Ask.got) != 7 {
			t.Errorf("%s: %v", addr, flags.Ask.got)
		}
		if _, err := net.Dial("tcp", strings.TrimPrefix(flags.Ask.url, "http://")); err == nil {
			t.Errorf("%s: it answers after the command has ended", addr)
		}
	}
}

func TestProfilesElsewhere(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for addr, text := range map[string]string{
		":6060": "name an address of this computer, such as 127.0.0.1:6060", "0.0.0.0:6060": "ask for no password", "[::]:6060": `--pprof "[::]:6060"`,
		"192.0.2.7:6060": "name an address", "drill7.example:6060": "name an address", "6060": "name an address", "127.0.0.1": "name an address",
		taken.Addr().String(): "stop the program that uses it",
	} {
		var flags struct {
			Run struct{ nothing } `cmd:""`
		}
		err := Run(t.Context(), &flags, "thing", "Do a thing.", []string{"run", "--pprof", addr}, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v, want %q", addr, err, text)
		}
	}
}

type nothing struct{}

func (nothing) Run() error { return nil }
