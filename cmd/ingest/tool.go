package main

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

type toolFlags struct {
	Config  string   `required:"" placeholder:"FILE" help:"Configuration of the ingest that is running, on this computer."`
	Machine string   `placeholder:"PATH" help:"ISA-95 path of the machine, where the configuration has several."`
	Tool    *string  `placeholder:"NAME" help:"Tool that is in use from now on, for example T08. One that was in before goes on with its reference, wear and alarm."`
	New     bool     `help:"The tool is new under its name, such as a reground drill or a fresh insert: its reference, wear and alarm start again. Without --tool: the tool in use."`
	Hole    *string  `placeholder:"NAME" help:"Hole that is being cut."`
	Speed   *float64 `placeholder:"RPM" help:"Spindle speed in rev/min."`
}

// tellTool tells the running ingest what a machine is doing.
func tellTool(ctx context.Context, f toolFlags, stdout io.Writer) error {
	change := feed.Change{Tool: f.Tool, Hole: f.Hole, SpindleSpeed: f.Speed, New: f.New}
	if err := change.Check(); err != nil {
		return fmt.Errorf("%w (by --tool, --new, --hole or --speed)", err)
	}
	c, err := load(f.Config)
	if err != nil {
		return err
	}
	m, err := c.find(f.Machine)
	if err != nil {
		return err
	}
	if !m.Source.live() {
		return fmt.Errorf("%s: machine %s: its source, %s, names its tools itself", f.Config, m.Machine, m.Source.Kind)
	}
	body, err := json.Marshal(told{Machine: m.Machine, Change: change})
	if err != nil {
		return err
	}
	path := filepath.Join(config.ResolvePath(f.Config, m.Spool), controlFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: `ingest run` of this machine is not running: start it and say it again", err)
	}
	if err != nil {
		return fmt.Errorf("%w: only who runs `ingest run` may name the tool", err)
	}
	var at control
	if err := json.Unmarshal(text, &at); err != nil {
		return fmt.Errorf("%s: is damaged: %w: start `ingest run` again", path, err)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at.URL+"/v1/context", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%s: is damaged: %w: start `ingest run` again", path, err)
	}
	req.Header.Set("Authorization", "Bearer "+at.Token)
	// Not through a proxy: it is this computer, and the token is for nobody else.
	res, err := (&http.Client{Transport: &http.Transport{Proxy: nil, DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return fmt.Errorf("%w: `ingest run` of this machine is not running: start it and say it again", err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, 1<<16))
	if err != nil {
		return fmt.Errorf("ingest run: %w: say it again", err)
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("ingest run: %s", strings.TrimSpace(string(answer)))
	}
	var now struct {
		Machine, Tool, Hole string
		Speed               float64 `json:"spindle_speed"`
	}
	if err := json.Unmarshal(answer, &now); err != nil {
		return fmt.Errorf("ingest run: %w", err)
	}
	if f.New {
		tool := now.Tool
		if f.Tool != nil {
			tool = *f.Tool
		}
		fmt.Fprintf(stdout, "%s: tool %s is new from now on\n", now.Machine, tool)
	}
	_, err = fmt.Fprintf(stdout, "%s: tool %s, hole %s, %s\n", now.Machine, orUnknown(now.Tool), orUnknown(now.Hole), speedText(now.Speed))
	return err
}

func orUnknown(name string) string {
	if name == "" {
		return "not known"
	}
	return name
}

func speedText(rpm float64) string {
	if rpm == 0 {
		return "spindle speed not known"
	}
	return fmt.Sprintf("%v rev/min", rpm)
}
