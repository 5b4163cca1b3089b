package ingest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/source/feed"
)

// control is the file by which `ingest tool` finds the running ingest.
type control struct {
	URL   string `json:"url"`
	Token string `json:"token"`
}

const controlFile = "control.json"

// writeControl writes a file that only this user can read.
func writeControl(path string, c control) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return config.WriteDataFile(path, text)
}

// contextRequest is the body of a request to /v1/context: which machine, and what
// changes there.
type contextRequest struct {
	Machine string `json:"machine"`
	feed.Change
}

// Context is which tool, hole and speed a machine has, and what else is known of it.
type Context struct {
	Machine      string  `json:"machine"`
	Tool         string  `json:"tool"`
	Hole         string  `json:"hole"`
	SpindleSpeed float64 `json:"spindle_speed"`
	ToolLife     string  `json:"tool_life"`
	FeedRate     float64 `json:"feed_rate,omitempty"`
	Programme    string  `json:"programme,omitempty"`
	Material     string  `json:"material,omitempty"`
}

// setContext applies a request to /v1/context. It returns the context after it.
func (s *Supervisor) setContext(body io.Reader) (now Context, code int, err error) {
	var req contextRequest
	if err := json.NewDecoder(body).Decode(&req); err != nil {
		return now, http.StatusBadRequest, fmt.Errorf("the body is not JSON: %w", err)
	}
	for _, m := range s.machines {
		if m.Path != req.Machine {
			continue
		}
		if err := m.namesTools(); err != nil {
			return now, http.StatusConflict, err
		}
		set, err := m.context()
		if err != nil {
			return now, http.StatusInternalServerError, err
		}
		is, err := set.Apply(req.Change)
		switch {
		case errors.Is(err, feed.ErrNamed), errors.Is(err, feed.ErrNoTool):
			return now, http.StatusConflict, err
		case err != nil && req.Check() != nil:
			return now, http.StatusBadRequest, err
		case err != nil:
			return now, http.StatusInternalServerError, err
		}
		m.log.Info().Str("tool", is.Tool).Str("hole", is.Hole).Float64("spindle_speed", is.SpindleSpeed).Float64("feed_rate", is.FeedRate).Str("programme", is.Programme).Str("material", is.Material).Bool("new", req.New).Str("tool_life", is.ToolLife).Msg("context changed")
		return Context{m.Path, is.Tool, is.Hole, is.SpindleSpeed, is.ToolLife, is.FeedRate, is.Programme, is.Material}, http.StatusOK, nil
	}
	return now, http.StatusNotFound, fmt.Errorf("machine %q is not ingested here", req.Machine)
}

// namesTools reports a machine whose tools cannot be named, because its source names
// them.
func (m Machine) namesTools() error {
	if m.Source.live() {
		return nil
	}
	return fmt.Errorf("machine %s: its source, %s, names its tools itself; declare one new with `monitor machines new-tool`", m.Path, m.Source.Kind)
}

// SetContext tells the running ingest, on this computer, what changes at a machine. It
// returns the context after that.
func SetContext(ctx context.Context, m Machine, change feed.Change) (now Context, err error) {
	if err := m.namesTools(); err != nil {
		return now, fmt.Errorf("%s: %w", m.file, err)
	}
	path := filepath.Join(m.SpoolDir(), controlFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return now, notRunning(err)
	}
	if err != nil {
		return now, fmt.Errorf("%w: only the user who runs `ingest run` can name the tool", err)
	}
	var to control
	if err := json.Unmarshal(text, &to); err != nil {
		return now, damagedControl(path, err)
	}
	body, err := json.Marshal(contextRequest{Machine: m.Path, Change: change})
	if err != nil {
		return now, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL+"/v1/context", bytes.NewReader(body))
	if err != nil {
		return now, damagedControl(path, err)
	}
	req.Header.Set("Authorization", "Bearer "+to.Token)
	answer, err := askIngest(req)
	if err != nil {
		return now, err
	}
	if err := json.Unmarshal(answer, &now); err != nil {
		return now, fmt.Errorf("ingest run: %w", err)
	}
	return now, nil
}

// askIngest sends a request to the running ingest. The request does not pass a proxy:
// it is for this computer, and no other program may see the token.
func askIngest(req *http.Request) (answer []byte, err error) {
	res, err := (&http.Client{Transport: &http.Transport{Proxy: nil, DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return nil, notRunning(err)
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(res.Body, 1<<16))
	if err != nil {
		return nil, fmt.Errorf("ingest run: %w: run this command again", err)
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ingest run: %s", strings.TrimSpace(string(answer)))
	}
	return answer, nil
}

func notRunning(err error) error {
	return fmt.Errorf("%w: `ingest run` of this machine is not running: start it, then run this command again", err)
}

func damagedControl(path string, err error) error {
	return fmt.Errorf("%s: is damaged: %w: restart `ingest run`", path, err)
}
