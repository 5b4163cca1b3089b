// Package webtest asks the HTTP servers of programs, for tests.
package webtest

import (
	"io"
	"net/http"
	"testing"
)

// Get returns the status and the text of the answer to a GET.
func Get(t testing.TB, url string) (status int, text string) {
	t.Helper()
	res, err := http.Get(url) //nolint:gosec,noctx // the test's own server
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}
