package evidence

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"strings"

	"github.com/flank-tcm/flank/pkg/window"
)

// Handler serves what is kept:
//
//	GET /evidence/NAME.arrow   the windows, as schemas/evidence.arrow.md says
//	GET /api/evidence/NAME     the Envelope
//	GET /api/evidence/NAME/spectra?channel=CHANNEL   the spectra of a channel
//
// Nothing else can be read by it, for any path.
func (s *Store) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /evidence/{file}", func(w http.ResponseWriter, r *http.Request) {
		file := r.PathValue("file")
		if name, ok := strings.CutSuffix(file, ".arrow"); ok {
			s.serve(w, r, name, ".arrow", window.FileContentType)
			return
		}
		http.NotFound(w, r)
	})
	mux.HandleFunc("GET /api/evidence/{name}", func(w http.ResponseWriter, r *http.Request) {
		s.serve(w, r, r.PathValue("name"), ".json", "application/json")
	})
	mux.HandleFunc("GET /api/evidence/{name}/spectra", s.serveSpectra)
	return mux
}

// serveSpectra computes the spectra of a channel. It does so for one request at a time:
// the samples of a fast channel take 64 MB.
func (s *Store) serveSpectra(w http.ResponseWriter, r *http.Request) {
	s.spectra.Lock()
	defer s.spectra.Unlock()
	out, err := s.Spectra(r.PathValue("name"), r.URL.Query().Get("channel"))
	var text string
	code := http.StatusNotFound
	switch {
	case err == nil:
		data, err := json.Marshal(out)
		if err != nil {
			panic("evidence: spectra: " + err.Error()) // they hold finite numbers only
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write(data)
		return
	case CheckName(r.PathValue("name")) != nil:
		text = noName
	case errors.Is(err, fs.ErrNotExist):
		text = notThere
	case errors.Is(err, window.ErrNoChannel):
		text = "the evidence has no such channel: /api/evidence/" + r.PathValue("name") + " lists them"
	case errors.Is(err, ErrNoSpectrum):
		text = "the channel has too few samples a window for a spectrum"
	default:
		code, text = http.StatusInternalServerError, "the file cannot be read"
	}
	http.Error(w, text, code)
}

// What a person reads who asks for evidence that is not there.
const (
	noName   = "no evidence of that name: it is in the alert, such as A-K3ZQ7M2P-4711"
	notThere = "not there: it comes some seconds after its alert, and goes when there is newer"
)

// serve sends one file of the store. It opens it within the folder, and only
// under a name of evidence.
func (s *Store) serve(w http.ResponseWriter, r *http.Request, name, ext, contentType string) {
	if CheckName(name) != nil {
		http.Error(w, noName, http.StatusNotFound)
		return
	}
	f, err := os.OpenInRoot(s.dir, name+ext)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		http.Error(w, notThere, http.StatusNotFound)
		return
	case err != nil:
		http.Error(w, "the file cannot be read", http.StatusInternalServerError)
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		http.Error(w, "the file cannot be read", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", contentType)
	if ext == ".arrow" {
		w.Header().Set("Content-Disposition", `attachment; filename="`+name+ext+`"`)
	}
	http.ServeContent(w, r, "", info.ModTime(), f)
}
