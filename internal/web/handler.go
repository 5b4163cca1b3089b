package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"sync"
	"time"

	"github.com/flank-tcm/flank/schemas"
)

//go:embed static
var static embed.FS

// server answers what pages ask: with what a hub shows, and with what others remember.
type server struct {
	hub *Hub
	Config
}

// Handler returns the dashboard: the page at /, its parts below /static/, and the API that
// schemas/openapi.yaml describes. /evidence/ and /api/evidence/ are there only with
// Config.Evidence, and POST /api/commands only with Config.Control, and behind a [Guard] that
// knows who asks.
//
// Otherwise only GET and HEAD are answered, and nothing can be changed. An event
// stream ends when the context of its request does: give the http.Server a
// BaseContext that ends before Shutdown is called. It sets its own write
// deadlines.
func (h *Hub) Handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, handler := range h.server.routes() {
		mux.Handle(pattern, handler)
	}
	return secured(mux)
}

// routes returns what answers each pattern of the handler.
func (x *server) routes() map[string]http.Handler {
	all := map[string]http.Handler{
		"GET /api/events":       http.HandlerFunc(x.serveEvents),
		"GET /api/openapi.yaml": openAPI(),
		"GET /livez":            http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { text(w, http.StatusOK, "ok") }),
		"GET /readyz":           http.HandlerFunc(x.serveReady),
	}
	for name, f := range files() {
		all["GET /static/"+name] = f
	}
	all["GET /{$}"] = files()["index.html"]
	for pattern, a := range x.api() {
		all[pattern] = a
	}
	if x.Control != nil {
		control := *x.Control
		control.tools = x.hub.toolsOf
		all["POST /api/commands"] = http.HandlerFunc(control.serve)
	}
	if x.Config.Evidence != nil {
		all["GET /evidence/"], all["GET /api/evidence/"] = x.Config.Evidence, x.Config.Evidence
	}
	return all
}

// policy lets the page load its own files and nothing else: no inline script,
// no other host, no frame around it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hd := w.Header()
		hd.Set("Content-Security-Policy", policy)
		hd.Set("X-Content-Type-Options", "nosniff")
		hd.Set("Referrer-Policy", "no-referrer")
		hd.Set("Cross-Origin-Opener-Policy", "same-origin")
		hd.Set("Cross-Origin-Resource-Policy", "same-origin")
		hd.Set("Cache-Control", "no-cache")
		next.ServeHTTP(w, r)
	})
}

// file is one embedded file.
type file struct {
	content     []byte
	zipped      []byte // nil: compressing it saves nothing
	contentType string
	tag         string // of the content; the tag of the compressed one differs
}

func newFile(content []byte, contentType string) file {
	sum := sha256.Sum256(content)
	f := file{content: content, contentType: contentType, tag: hex.EncodeToString(sum[:8])}
	if z := zipped(content, gzip.BestCompression); len(z) < len(content) {
		f.zipped = z
	}
	return f
}

func (f file) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	hd := w.Header()
	hd.Set("Content-Type", f.contentType)
	content, tag := f.content, f.tag
	if f.zipped != nil {
		hd.Add("Vary", "Accept-Encoding")
		if takesGzip(r) && r.Header.Get("Range") == "" {
			content, tag = f.zipped, f.tag+"-gzip"
			hd.Set("Content-Encoding", "gzip")
		}
	}
	hd.Set("ETag", `"`+tag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

// contentTypes are listed here and not asked of the system, whose tables differ.
var contentTypes = map[string]string{
	".html":    "text/html; charset=utf-8",
	".css":     "text/css; charset=utf-8",
	".js":      "text/javascript; charset=utf-8",
	".mjs":     "text/javascript; charset=utf-8",
	".svg":     "image/svg+xml",
	".LICENSE": "text/plain; charset=utf-8",
}

var openAPI = sync.OnceValue(func() file { return newFile(schemas.OpenAPI, "application/yaml") }) // compressed once, as files are

// files returns the embedded files by their path below static/. They are compressed once.
var files = sync.OnceValue(func() map[string]file {
	root, err := fs.Sub(static, "static")
	if err != nil {
		panic("web: " + err.Error())
	}
	all := make(map[string]file)
	err = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		typ, ok := contentTypes[path.Ext(name)]
		if !ok {
			return fmt.Errorf("no content type for %s", name)
		}
		all[name] = newFile(content, typ)
		return nil
	})
	if err != nil {
		panic("web: " + err.Error())
	}
	return all
})

func (x *server) serveReady(w http.ResponseWriter, _ *http.Request) {
	x.hub.mu.Lock()
	s := x.hub.status
	x.hub.mu.Unlock()
	if x.Ready != nil {
		if err := x.Ready(); err != nil {
			text(w, http.StatusServiceUnavailable, err.Error())
			return
		}
	}
	if s.Phase != Monitoring && s.Phase != Done {
		text(w, http.StatusServiceUnavailable, s.Phase+": "+s.Text)
		return
	}
	text(w, http.StatusOK, "ok")
}

func text(w http.ResponseWriter, code int, s string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	fmt.Fprintln(w, s)
}

// encode returns v as JSON. The hub lets no number in that JSON cannot hold.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("web: " + err.Error())
	}
	return b
}
