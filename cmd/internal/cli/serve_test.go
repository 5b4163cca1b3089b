package cli

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

func TestServe(t *testing.T) {
	var log bytes.Buffer
	_, stop, err := Serve("127.0.0.1:0", "metrics", http.NotFoundHandler(), zerolog.New(&log))
	if err != nil {
		t.Fatal(err)
	}
	_, url, _ := strings.Cut(log.String(), `"metrics":"`)
	url, _, _ = strings.Cut(url, `"`)
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusNotFound {
		t.Errorf("%s, %v", res.Status, err)
	}
	res.Body.Close()
	if _, _, err := Serve(strings.TrimPrefix(url, "http://"), "metrics", nil, zerolog.Nop()); err == nil || !strings.Contains(err.Error(), "metrics: ") || !strings.Contains(err.Error(), "choose another address") {
		t.Errorf("an address in use: %v", err)
	}
	stop()
	if _, err := http.Get(url); err == nil {
		t.Error("it answers after stop")
	}
}
