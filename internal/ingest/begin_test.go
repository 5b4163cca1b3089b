//go:build unix

package ingest

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A machine is not ready before its source is open.
func TestNotReadyBeforeSource(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"tcp", "folder"} {
		s := newSupervisor("acme/spore/bay2/line1/usk25")
		m := s.machines[0]
		m.Source.Kind, m.Layout = kind, filepath.Join(t.TempDir(), "layout.yaml")
		if err := syscall.Mkfifo(m.Layout, 0o600); err != nil {
			t.Skipf("no named pipes here: %v", err)
		}
		ended := make(chan error, 1)
		go func() { ended <- m.run(t.Context()) }()
		layout, err := os.OpenFile(m.Layout, os.O_WRONLY, 0) // waits until the machine reads its layout
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Ready(); err == nil || !strings.Contains(err.Error(), "ingesting has not begun") {
			t.Errorf("%s: while the source is opened: %v", kind, err)
		}
		if _, err := layout.WriteString("name: 1\n"); err != nil {
			t.Fatal(err)
		}
		layout.Close()
		if err := <-ended; err == nil {
			t.Errorf("%s: ran with a layout without channels", kind)
		}
		if err := s.Ready(); err == nil || !strings.Contains(err.Error(), "ingesting failed") {
			t.Errorf("%s: after it failed: %v", kind, err)
		}
	}
}
