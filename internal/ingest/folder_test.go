package ingest

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"
)

// The summary of a folder names its machine where there are several.
func TestFolderSummary(t *testing.T) {
	const path = "acme/spore/bay2/line1/usk25"
	for want, n := range map[string]int{
		"0 recordings sent, 0 could not be read, 0 windows delivered\n":          0,
		path + ": 0 recordings sent, 0 could not be read, 0 windows delivered\n": 2,
	} {
		m := newSupervisor(path).machines[0]
		var out bytes.Buffer
		m.Source.Kind, m.Source.Folder, m.Spool = "folder", t.TempDir(), filepath.Join(t.TempDir(), "spool")
		m.all.Machines, m.stdout = make([]listed, n), &out
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := m.run(ctx); err != nil || out.String() != want {
			t.Errorf("of %d machines: %v, %q", n, err, out.String())
		}
	}
}
