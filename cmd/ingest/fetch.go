package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/event/fetch"
	"github.com/flank-tcm/flank/internal/ingest"
	"github.com/flank-tcm/flank/internal/plain"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

type fetchCommand struct {
	cli.ConfigFile
	cli.OneMachine
	cli.Span
	Windows     int `default:"3600" help:"At most so many windows, the oldest first."`
	cli.Waiting `set:"wait=1m"`
	cli.Person
	Out string `placeholder:"DIR" help:"Write the windows into Arrow files in this folder. Without it they are only sent to Kafka."`
}

// fetchTime is how long after --wait a gateway may take for each window.
const fetchTime = time.Second

// Run sends the command and waits for the windows and the answer.
func (f *fetchCommand) Run(ctx context.Context, out cli.Output) error {
	c, err := ingest.Load(f.Config)
	if err != nil {
		return err
	}
	path := f.Machine
	if path == "" {
		m, err := c.Find("")
		if err != nil {
			return err
		}
		path = m.Path
	}
	if err := event.CheckMachine(path); err != nil {
		return fmt.Errorf("--machine: %w", err)
	}
	command, err := f.command(path, time.Now())
	if err != nil {
		return err
	}
	to, err := c.Bus("flank-fetch")
	if err != nil {
		return err
	}
	files := &arrowFiles{dir: f.Out, command: command.ID, machine: path}
	if f.Out != "" {
		if err := os.MkdirAll(f.Out, 0o700); err != nil {
			return err
		}
	}
	p := &fetchProgress{out: out.Stdout, printed: time.Now()}
	answer, err := fetch.Ask(ctx, to, command, f.Wait, func(m bus.Message) error {
		p.window(&m)
		if f.Out == "" {
			return nil
		}
		return files.add(&m)
	})
	cli.AuditCommand(ctx, to, program, command.By, out.Stderr, event.Audit{Action: event.Fetch, Machine: path, Command: command.ID}, err)
	if closed := files.close(); err == nil {
		err = closed
	}
	for _, name := range files.names {
		fmt.Fprintf(out.Stdout, "%s\n", name)
	}
	switch {
	case errors.Is(err, fetch.ErrSilent):
		return f.silent(path, p.windows, command.Until)
	case err != nil:
		return fmt.Errorf("%s: %w", path, err)
	case answer.Windows == 0:
		return fmt.Errorf("%s: %s", path, plain.Short(answer.Text, 2000))
	}
	_, err = fmt.Fprintf(out.Stdout, "%s: %s\n", path, plain.Short(answer.Text, 2000))
	return err
}

// command returns the command that the flags name.
func (f *fetchCommand) command(machine string, now time.Time) (event.Command, error) {
	until := f.Until.Time
	if until.IsZero() && !f.Since.IsZero() {
		until = now
	}
	c := event.Command{
		ID: event.NewCommandID(), Machine: machine, Action: event.Fetch, By: f.By, Issued: now.UTC(),
		Wanted: &event.Wanted{From: f.Since.Time, To: until, Windows: f.Windows},
		Until:  now.UTC().Add(min(f.Wait+time.Duration(f.Windows)*fetchTime, event.MaxFetchWait)),
	}
	if f.Wait <= 0 {
		return c, fmt.Errorf("--wait: %v: must be positive, such as 1m", f.Wait)
	}
	if err := c.Wanted.Check(); err != nil {
		return c, fmt.Errorf("%w (by --since and --until; --windows bounds them)", err)
	}
	return c, c.Check()
}

// silent says why there may be no answer.
func (f *fetchCommand) silent(machine string, windows int, until time.Time) error {
	after := ""
	if windows > 0 {
		after = fmt.Sprintf(" after %d windows", windows)
	}
	return fmt.Errorf(`%s: %w for %v%s. Its ingest
  - may not run, or may not reach Kafka: it answers when it does, if that is before %s;
  - may be in mode raw: then its windows are in Kafka already, on %s;
  - may be of a release that has no mode edge: upgrade it;
  - may not have the right to read %s: run 'ingest check' there;
  - may have a wrong clock, and take the command for too old`, machine, fetch.ErrSilent, f.Wait, after, until.Format(time.RFC3339), bus.TopicWindows, bus.TopicCommands)
}

// fetchProgress prints how many windows have come, now and then.
type fetchProgress struct {
	out     io.Writer
	printed time.Time
	windows int
}

func (p *fetchProgress) window(m *bus.Message) {
	p.windows++
	if now := time.Now(); now.Sub(p.printed) >= 5*time.Second {
		p.printed = now
		fmt.Fprintf(p.out, "%d windows so far, up to %s\n", p.windows, plain.Short(string(m.Header("ce_time")), 40))
	}
}

// arrowFiles are the files that windows are written into: one for each epoch and layout.
type arrowFiles struct {
	dir, command, machine string

	codec  *window.Codec // of the windows in the file
	window window.Window
	epoch  uint64
	file   *os.File
	writer *window.FileWriter
	names  []string
}

// add writes the window of a message.
func (a *arrowFiles) add(m *bus.Message) error {
	e, err := envelope.Of(m)
	if err != nil {
		return err
	}
	other := a.codec == nil || !a.codec.Sealed(e)
	if other {
		layout, spec, err := window.LayoutOf(e)
		if err != nil {
			return err
		}
		if a.codec, err = window.NewCodec(layout, spec); err != nil {
			return err
		}
	}
	if err := a.codec.Open(e, &a.window); err != nil {
		return err
	}
	if other || a.window.Epoch != a.epoch {
		if err := a.begin(); err != nil {
			return err
		}
	}
	return a.writer.Write(&a.window)
}

// begin ends the file that is being written and starts the next.
func (a *arrowFiles) begin() error {
	if err := a.close(); err != nil {
		return err
	}
	a.epoch = a.window.Epoch
	name := fmt.Sprintf("%s-%s-%d.arrow", strings.ReplaceAll(a.machine, "/", "-"), a.window.EpochString(), a.window.Seq)
	root, err := os.OpenRoot(a.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if a.file, err = root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
		return err
	}
	a.names = append(a.names, filepath.Join(a.dir, name))
	a.writer = a.codec.NewFileWriter(a.file, [2]string{"machine", a.machine}, [2]string{"command", a.command},
		[2]string{"start", signal.FormatTime(a.window.Start, time.RFC3339Nano)})
	return nil
}

// close completes the file that is being written.
func (a *arrowFiles) close() error {
	if a.file == nil {
		return nil
	}
	var err error
	if a.writer != nil {
		err = a.writer.Close()
	}
	err = errors.Join(err, a.file.Close())
	a.file, a.writer = nil, nil
	return err
}
