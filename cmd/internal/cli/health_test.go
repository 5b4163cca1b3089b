package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHealth(t *testing.T) {
	code := http.StatusOK
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
	ask := func() error {
		var flags struct {
			Run struct{} `cmd:""`
		}
		return Run(t.Context(), &flags, "thing", "Do a thing.", []string{"--health", srv.URL + "/livez"}, io.Discard, io.Discard)
	}
	if err := ask(); err != nil {
		t.Error(err)
	}
	code = http.StatusServiceUnavailable
	if err := ask(); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("%v", err)
	}
	srv.Close()
	if err := ask(); err == nil || !strings.Contains(err.Error(), "--health") {
		t.Errorf("%v", err)
	}
}
