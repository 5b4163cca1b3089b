package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/testkit/golden"
	"github.com/flank-tcm/flank/pkg/signal"
)

func get(h *Hub, method, path string, header ...string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	h.Handler().ServeHTTP(w, r)
	return w
}

func TestHandler(t *testing.T) {
	h := newTestHub()
	for name, tc := range map[string]struct {
		method, path string
		code         int
		contentType  string
	}{
		"the page":                 {"GET", "/", 200, "text/html; charset=utf-8"},
		"its head":                 {"HEAD", "/", 200, "text/html; charset=utf-8"},
		"a module":                 {"GET", "/static/main.js", 200, "text/javascript; charset=utf-8"},
		"a vendored file":          {"GET", "/static/vendor/uPlot.min.css", 200, "text/css; charset=utf-8"},
		"the machines":             {"GET", "/api/machines", 200, "application/json"},
		"head of the events":       {"HEAD", "/api/events?page=fleet", 200, "text/event-stream"},
		"alive":                    {"GET", "/livez", 200, "text/plain; charset=utf-8"},
		"not ready while starting": {"GET", "/readyz", 503, "text/plain; charset=utf-8"},
		"no other page":            {"GET", "/admin", 404, "text/plain; charset=utf-8"},
		"no listing":               {"GET", "/static/", 404, "text/plain; charset=utf-8"},
		"no listing of a folder":   {"GET", "/static/vendor/", 404, "text/plain; charset=utf-8"},
		"no way out of the folder": {"GET", "/static/..%2fweb.go", 404, "text/plain; charset=utf-8"},
		"nothing can be posted":    {"POST", "/", 405, "text/plain; charset=utf-8"},
		"nor deleted":              {"DELETE", "/api/machines", 405, "text/plain; charset=utf-8"},
		"nor put among the events": {"PUT", "/api/events", 405, "text/plain; charset=utf-8"},
		"nor redirected":           {"POST", "/static/main.js", 405, "text/plain; charset=utf-8"},
	} {
		w := get(h, tc.method, tc.path)
		if w.Code != tc.code || w.Header().Get("Content-Type") != tc.contentType {
			t.Errorf("%s: %s %s: %d %s, want %d %s", name, tc.method, tc.path, w.Code, w.Header().Get("Content-Type"), tc.code, tc.contentType)
		}
		if tc.method == "HEAD" && w.Body.Len() != 0 {
			t.Errorf("%s: a body of %d bytes", name, w.Body.Len())
		}
		for k, want := range map[string]string{
			"Content-Security-Policy":      policy,
			"X-Content-Type-Options":       "nosniff",
			"Referrer-Policy":              "no-referrer",
			"Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := w.Header().Get(k); got != want {
				t.Errorf("%s: %s is %q, want %q", name, k, got, want)
			}
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") || !strings.HasPrefix(policy, "default-src 'none'") {
		t.Errorf("policy %q is not strict", policy)
	}
}

// Evidence is served with the headers of the rest, and only where there is some.
func TestEvidenceRoutes(t *testing.T) {
	if w := get(newTestHub(), "GET", "/evidence/A-K3ZQ7M2P-1.arrow"); w.Code != http.StatusNotFound {
		t.Errorf("without a store: %d", w.Code)
	}
	h := NewHub(Config{Layout: signal.GunDrill(), Evidence: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { text(w, http.StatusOK, r.URL.Path) })})
	for _, path := range []string{"/evidence/A-K3ZQ7M2P-1.arrow", "/api/evidence/A-K3ZQ7M2P-1"} {
		w := get(h, "GET", path)
		if w.Code != http.StatusOK || w.Body.String() != path+"\n" || w.Header().Get("Content-Security-Policy") != policy {
			t.Errorf("%s: %d %q %v", path, w.Code, w.Body, w.Header())
		}
		if w := get(h, "POST", path); w.Code != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: %d", path, w.Code)
		}
	}
}

func TestReady(t *testing.T) {
	h := newTestHub()
	h.Status(Status{Phase: Training, Text: "fold 3 of 5"})
	if w := get(h, "GET", "/readyz"); w.Code != http.StatusServiceUnavailable || w.Body.String() != "training: fold 3 of 5\n" {
		t.Errorf("training: %d %q", w.Code, w.Body)
	}
	for _, phase := range []string{Monitoring, Done} {
		h.Status(Status{Phase: phase})
		if w := get(h, "GET", "/readyz"); w.Code != http.StatusOK {
			t.Errorf("%s: %d", phase, w.Code)
		}
	}
}

func TestUnchangedFileIsNotSentAgain(t *testing.T) {
	h := newTestHub()
	tag := get(h, "GET", "/static/style.css").Header().Get("ETag")
	if w := get(h, "GET", "/static/style.css", "If-None-Match", tag); w.Code != http.StatusNotModified || w.Body.Len() != 0 {
		t.Errorf("%d, %d bytes", w.Code, w.Body.Len())
	}
}

// pretty returns the answer to a request, with one fact in each line.
func pretty(t *testing.T, h *Hub, path string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, get(h, "GET", path).Body.Bytes(), "", "  "); err != nil {
		t.Fatal(err)
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// goldenHub holds a machine of which everything is known.
func goldenHub() *Hub {
	h := newTestHub()
	w := testWindow(2)
	w.Envelope[0] = w.Envelope[0][:4] // keeps the file short
	w.Envelope[0][3] = nan
	w.RMS[0] = 1.0 / 3
	w.Quality[0] = signal.Clipped | signal.Dropout
	h.Window(w)
	r := testResult(2)
	h.Result(r)
	h.Alert(testAlert(2))
	h.Status(Status{Phase: Monitoring, Text: "monitoring usk25", Fraction: -1, WindowsPerSecond: 0.96})
	h.now = func() time.Time { return t0.Add(1500 * time.Millisecond) }
	return h
}

// The form of the answers is what other programs read: golden.
func TestMachineGolden(t *testing.T) {
	golden.Check(t, "machine.json", pretty(t, goldenHub(), "/api/machines/"+url.PathEscape(testMachine)))
}

// Two machines of different layouts: of the second the gateway has the samples.
func TestFleetGolden(t *testing.T) {
	h := newTestHub()
	h.layout, h.server.InsecureModels = nil, true
	w := testWindow(2)
	w.Layout, w.Envelope[0] = twoChannels(), w.Envelope[0][:4]
	h.Window(w)
	h.Models(testMachine, Models{Now: "ecs-dbn-17"})
	a := testAlert(2)
	a.Alarm, a.Incident = "raised", "A-K3ZQ7M2P"
	h.Alert(a)
	w = Window{Machine: testLathe, Layout: lathe(), Tool: "N2", Epoch: "00000000000000b2", Seq: 5, Start: t0, Quality: []signal.Quality{0, signal.Flatline, 0}}
	h.Window(w)
	h.Models(testLathe, Models{Now: "ecs-dbn-18", Next: "ecs-dbn-19", Shadows: []string{"ecs-dbn-20"}, Unsigned: true})
	golden.Check(t, "fleet.json", pretty(t, h, "/api/machines"))
}

// uPlot 1.6.32, as the npm registry has it (tarball integrity
// sha512-KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw==),
// and preact/standalone.mjs of htm 3.1.1, which holds Preact
// (sha512-983Vyg8NwUE7JkZ6NmOqpCZ+sh1bKv2iYTlUkzlWmA5JD2acKoxd4KVxbMmxX/85mtfdnDmTFoNKcg5DGAvxNQ==), with both licences.
func TestVendoredFiles(t *testing.T) {
	want := map[string]string{
		"vendor/htm-preact-standalone.mjs": "72284e8e9079c87817145df1110f74e8a2aa040b2fc384922e18dfcb46fc1fd7",
		"vendor/htm.LICENSE":               "740725f7252e750af735d0028cc534970772f513331e9f68150fede8fb3ce00f",
		"vendor/preact.LICENSE":            "1fe6958409c8c257a70c587a18b6f7f412b179b456630790d30b2ec9a8e4b7d4",
		"vendor/uPlot.iife.min.js":         "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
		"vendor/uPlot.min.css":             "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
		"vendor/uPlot.LICENSE":             "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
	}
	for name, f := range files() {
		if !strings.HasPrefix(name, "vendor/") {
			continue
		}
		sum := sha256.Sum256(f.content)
		if got := hex.EncodeToString(sum[:]); got != want[name] {
			t.Errorf("%s has SHA-256 %s, want %q", name, got, want[name])
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("%s is missing", name)
	}
}

// The page asks for nothing that is not served and nothing that its policy
// forbids.
func TestPageKeepsItsPolicy(t *testing.T) {
	var (
		reference = regexp.MustCompile(`(?:src|href)="([^"#][^"]*)"|from "\./([^"]+)"`)
		symbols   = regexp.MustCompile(`<symbol id="([^"]+)"`)
		used      = regexp.MustCompile(`shape="([^"$]+)"`)
		inline    = regexp.MustCompile(`(?i)<script>|<style|\sstyle="|\son[a-z]+="|javascript:|eval\(|innerHTML`)
		external  = regexp.MustCompile(`(?i)(https?:)?//[a-z0-9-]+\.[a-z]`)
		namespace = "http://www.w3.org/2000/svg" // a name, never fetched
	)
	have := make(map[string]bool)
	for _, m := range symbols.FindAllStringSubmatch(string(files()["index.html"].content), -1) {
		have[m[1]] = true
	}
	h := newTestHub()
	var lines int
	err := fs.WalkDir(static, "static", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(path, "/vendor/") {
			return err
		}
		b, err := fs.ReadFile(static, path)
		if err != nil {
			return err
		}
		text := strings.ReplaceAll(string(b), namespace, "")
		for _, m := range reference.FindAllStringSubmatch(text, -1) {
			target := m[1]
			if m[2] != "" {
				target = "/static/" + m[2]
			}
			if w := get(h, "GET", target); w.Code != 200 {
				t.Errorf("%s asks for %s: %d", path, target, w.Code)
			}
		}
		if m := inline.FindString(text); m != "" {
			t.Errorf("%s: %q is against the policy", path, m)
		}
		if m := external.FindString(text); m != "" {
			t.Errorf("%s: %q leads to another host", path, m)
		}
		if strings.HasSuffix(path, ".js") {
			lines += strings.Count(text, "\n")
			for _, m := range used.FindAllStringSubmatch(text, -1) {
				if !have[m[1]] {
					t.Errorf("%s draws the shape %s, which index.html does not have", path, m[1])
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if lines > 5000 {
		t.Errorf("%d lines of JavaScript and texts: keep the page small", lines)
	}
}
