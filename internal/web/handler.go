package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"time"
)

//go:embed static
var static embed.FS

// Handler returns the dashboard:
//
//	GET /             the page
//	GET /static/…     its parts
//	GET /api/state    all that the hub holds of one machine, and the list of all
//	                  machines, as JSON: of ?machine=NAME, of the machine of
//	                  ?alarm=INCIDENT, or of the first by name
//	GET /api/events   the same as server-sent events: a snapshot, then updates
//	GET /evidence/…, /api/evidence/…   only with Config.Evidence
//	GET /livez        200 while the program runs
//	GET /readyz       200 once the phase is Monitoring or Done, else 503 and why
//	POST /api/commands  acknowledges or shelves an alarm: only with Config.Control,
//	                    the token of which is the request's bearer token
//
// Otherwise only GET and HEAD are answered, and nothing can be changed. An event
// stream ends when the context of its request does: give the http.Server a
// BaseContext that ends before Shutdown is called. It sets its own write
// deadlines.
func (h *Hub) Handler() http.Handler {
	mux := http.NewServeMux()
	for name, f := range files() {
		mux.Handle("GET /static/"+name, f)
		if name == "index.html" {
			mux.Handle("GET /{$}", f)
		}
	}
	mux.HandleFunc("GET /api/state", h.serveState)
	mux.HandleFunc("GET /api/events", h.serveEvents)
	if h.control != nil {
		mux.Handle("POST /api/commands", h.control.handler())
	}
	if h.evidence != nil {
		mux.Handle("GET /evidence/", h.evidence)
		mux.Handle("GET /api/evidence/", h.evidence)
	}
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { text(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", h.serveReady)
	return secured(mux)
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
	contentType string
	tag         string
}

func (f file) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", f.contentType)
	w.Header().Set("ETag", f.tag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.content))
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

// files returns the embedded files by their path below static/.
func files() map[string]file {
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
		sum := sha256.Sum256(content)
		all[name] = file{content, typ, `"` + hex.EncodeToString(sum[:8]) + `"`}
		return nil
	})
	if err != nil {
		panic("web: " + err.Error())
	}
	return all
}

func (h *Hub) serveState(w http.ResponseWriter, r *http.Request) {
	s, _ := h.snapshot(h.choose(r.URL.Query()))
	w.Header().Set("Content-Type", "application/json")
	w.Write(encode(s))
}

func (h *Hub) serveReady(w http.ResponseWriter, _ *http.Request) {
	h.mu.Lock()
	s := h.status
	h.mu.Unlock()
	if h.ready != nil {
		if err := h.ready(); err != nil {
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
