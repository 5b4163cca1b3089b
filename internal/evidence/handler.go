package evidence

import (
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
	return mux
}

// serve sends one file of the store. It opens it within the folder, and only
// under a name of evidence.
func (s *Store) serve(w http.ResponseWriter, r *http.Request, name, ext, contentType string) {
	if CheckName(name) != nil {
		http.Error(w, "no evidence of that name: it is in the alert, such as A-K3ZQ7M2P-4711", http.StatusNotFound)
		return
	}
	f, err := os.OpenInRoot(s.dir, name+ext)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		http.Error(w, "not there: it comes some seconds after its alert, and goes when there is newer", http.StatusNotFound)
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
