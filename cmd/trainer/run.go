package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/pkg/model"
)

// program is the name under which the audit has what this program does.
const program = "trainer"

const description = `Build models of tool condition from labelled recordings, examine them, and look into them.

A recording is a table with one row for each sample; the layout file of the configuration says which
columns are channels. Labels are a column of the recording or a wear file. A table (.csv, .parquet,
.arrow) has one row for each window instead: the columns tool, class or vb_max_um, optionally machine,
hole and start, and all others are features; class is the number or name of one of the configuration's
classes (healthy, faulty). Tools, never single windows, are held out for the score.

  trainer init --data turning.csv --rate 1
  trainer fit --config examples/turning/train.yaml --data turning.csv --model turning.flank
  trainer fit --config examples/milling/train.yaml --data 'runs/*.csv' --model milling.flank
  trainer fit --table features.parquet --model features.flank
  trainer features --config examples/turning/train.yaml --data turning.csv --out turning.parquet
  trainer fit --kafka 10.0.0.5:9092 --wear wear.csv --since 2026-11-02T06:00:00Z --model drill.flank
  trainer fit --kafka 10.0.0.5:9092 --from features --wear wear.csv --since 2026-09-01T00:00:00Z
  trainer archive --kafka 10.0.0.5:9092 --layout layout.yaml --out /srv/archive --keep 5y
  trainer fit --config train.yaml --table '/srv/archive/features/**/*.parquet' --wear wear.csv
  trainer labels check --config train.yaml --data 'runs/*.csv' --wear wear.csv
  trainer inspect turning.flank
  trainer evaluate --model turning.flank --data new-tools.csv
  trainer costs --model turning.flank
  trainer relabel --model turning.flank --wear wear.csv
  trainer tune --config monitor.yaml --data turning.csv --budget "1 per 8h"
  trainer export onnx turning.flank
  trainer study --data my.csv --label faulty --group tool
  trainer search --config examples/turning/train.yaml --data turning.csv --trials 20

Models reach the monitors over Kafka, signed (docs/how-to/roll-out-a-model.md):

  trainer keys new
  trainer publish drill.flank --kafka 10.0.0.5:9092 --key flank.key
  trainer promote ecs-dbn-1f3a9c02d4e5 --for 'acme/spore/bay2/**' --shadow 48h --kafka 10.0.0.5:9092 --key flank.key
  trainer rollback --for 'acme/spore/bay2/**' --kafka 10.0.0.5:9092 --key flank.key
  trainer watch --once --config train.yaml --labels all --kafka 10.0.0.5:9092
  trainer models ls --kafka 10.0.0.5:9092 --public-key flank.pub

docs/reference/training.md lists the keys of the configuration: labels, network, early stopping, costs.

Next to the model, fit writes a model card for people, .report.html, which opens in any browser, and a
report for programs, .report.json. Both begin with the verdict whether to switch the model on.`

type flags struct {
	Init         initCommand         `cmd:"" help:"Look into a recording, and write a layout and a training configuration for it." more:"It looks into the first recording that --data names; others like it need no layout of their own. Without --window the length of a window suits the rates.\n\nIt writes layout.yaml and train.yaml into the folder --out. Files that are there are not overwritten. --wear is for the configuration." example:"trainer init --data turning.csv --rate 1"`
	Fit          fitCommand          `cmd:"" help:"Train a model and score it on tools it has not seen." example:"trainer fit --config train.yaml --data turning.csv --model turning.flank; trainer fit --kafka kafka1:9092 --wear wear.csv --since 2026-11-02T06:00:00Z --model drill.flank"`
	Evaluate     evaluateCommand     `cmd:"" help:"Examine a model on labelled recordings or tables: all figures, pooled and by tool." more:"An alarm is raised at k faulty windows of the last n that were judged. A window is faulty from the score threshold on. Without --alarm that is k=5,n=8,threshold=0.5." example:"trainer evaluate --model turning.flank --data new-tools.csv; trainer evaluate --model turning.flank --table features.parquet --format json"`
	Relabel      relabelCommand      `cmd:"" help:"Choose the costs of a model again for labels that have come since, without training its network." more:"The new model has .relabelled before its ending, unless --out says other. Its card is written next to it as .report.html, the report for programs as .report.json." example:"trainer relabel --model drill.flank --wear wear.csv; trainer relabel --model drill.flank --labels all --kafka kafka1:9092"`
	Labels       labelsCommand       `cmd:"" help:"Give labels, and look at them before training."`
	Shadow       shadowCommand       `cmd:"" help:"Look at models on trial."`
	Costs        costsCommand        `cmd:"" help:"Show the costs of a model, what else there was to choose, and how much it matters." example:"trainer costs --model turning.flank"`
	Features     featuresCommand     `cmd:"" help:"Write what a model sees of recordings as a table, for pandas, DuckDB, R and --table." more:"The table is Parquet, Arrow or CSV, by the ending of --out: .parquet, .arrow or .csv." example:"trainer features --config train.yaml --data turning.csv --out turning.parquet"`
	Archive      archiveCommand      `cmd:"" help:"Keep features, results, alerts and labels of Kafka for years, as Parquet files in a folder." more:"The files in the folder --out say where to go on." example:"trainer archive --kafka kafka1:9092 --layout layout.yaml --out /srv/archive --keep 5y; trainer archive --kafka kafka1:9092 --layout layout.yaml --out /srv/archive --follow"`
	FeatureNames featureNamesCommand `cmd:"" help:"Print the names of the features that messages of tcm.features.v1 have of a layout, one a line." more:"--window is window.length of ingest.yaml, 1s if it is not given." example:"trainer feature-names layout.yaml"`
	Search       searchCommand       `cmd:"" help:"Try other hidden layers, rates and decay, and say honestly what that gains." more:"The report for programs goes to --out. What a search that is cut off has trained is kept next to it." example:"trainer search --config train.yaml --data turning.csv --trials 20"`
	Study        studyCommand        `cmd:"" help:"Say which method to deploy for your data, ECS-DBN or a simpler one." example:"trainer study --data my.csv --label faulty --group tool"`
	Tune         tuneCommand         `cmd:"" help:"Choose k, n and the threshold of the alarm for a budget of false alarms, by replaying labelled tools." example:"trainer tune --config monitor.yaml --data turning.csv --budget '1 per 8h'; trainer tune --config monitor.yaml --model MODEL.flank --data DATA --budget '1 per 8h'"`
	Inspect      inspectCommand      `cmd:"" help:"Print what is in a model file, and check it." example:"trainer inspect turning.flank; trainer inspect turning.flank --format json"`
	Export       exportCommand       `cmd:"" help:"Write the classifier of a model in a form that other programs read." example:"trainer export onnx turning.flank --out turning.onnx; trainer export safetensors turning.flank"`
	Keys         keysCommand         `cmd:"" help:"Make the keys that models and deployments are signed with."`
	Publish      publishCommand      `cmd:"" help:"Put a model on Kafka, where monitors find it. It judges nothing yet." example:"trainer publish drill.flank --kafka kafka1:9092 --key flank.key --by anna"`
	Promote      promoteCommand      `cmd:"" help:"Let a published model judge machines, or run as a shadow on trial." more:"A model that cannot judge what these machines send, such as one that is trained on windows of another length, is promoted only with --anyway. It judges once they send what it takes; until then no model judges them.\n\nSettings that --alarm does not name stay as in the deployment; if that has none of its own, they are the program's defaults, not what monitor.yaml says. --alarm monitor takes what each monitor is configured to." example:"trainer promote ecs-dbn-1f3a9c02d4e5 --for 'acme/spore/bay2/**' --shadow 48h --kafka kafka1:9092 --key flank.key --by anna"`
	Watch        watchCommand        `cmd:"" help:"Say whether models that judge machines should be trained again, and with --run put a candidate on trial." example:"trainer watch --once --config train.yaml --labels all --kafka kafka1:9092; trainer watch --once --run --config train.yaml --labels all --model next.flank --key flank.key --kafka kafka1:9092"`
	Rollback     rollbackCommand     `cmd:"" help:"Bring back the model and the alarm settings that machines had before." example:"trainer rollback --for 'acme/spore/bay2/**' --kafka kafka1:9092 --key flank.key --by anna"`
	Retire       retireCommand       `cmd:"" help:"End a deployment, or the trial of a shadow." example:"trainer retire --for 'acme/spore/bay2/**' --kafka kafka1:9092 --key flank.key --by anna"`
	Models       modelsCommand       `cmd:"" help:"List, show, compare and remove what is on Kafka; and who changed what."`
	Demo         demoCommand         `cmd:"" help:"Drill a simulated history and train a model from it, unless there is one." example:"trainer demo --model model.flank"`
}

// trainConfig is the flag of the training configuration.
type trainConfig struct {
	Config string `placeholder:"FILE" help:"Training configuration, see examples/turning/train.yaml. Its layout says where channels are in recordings, and its wear file has the labels. With a model it is not needed: the model knows its layout, windows, features and the rule of its labels."`
}

// dataFlags name the data that a command works on.
type dataFlags struct {
	trainConfig
	inputFlags
	layoutFlag
}

func (f dataFlags) load(log zerolog.Logger) (*dataset, error) {
	return f.inputFlags.load("--config", f.Config, f.Layout, nil, log)
}

// examFlags name a model, and the data that it is examined on.
type examFlags struct {
	trainConfig
	inputFlags
	examinedFlags
	Model string `required:"" placeholder:"FILE" help:"Model to examine; labels follow the rule that it was trained with."`
}

func (f examFlags) load(m *model.Model, log zerolog.Logger) (*dataset, error) {
	return f.loadFor(m, "--config", f.Config, f.examinedFlags, log)
}

// newModel names the file of a model that is trained.
type newModel struct {
	Model string `default:"model.flank" placeholder:"FILE" help:"Where to write the model; the model card is written next to it as .report.html, the report for programs as .report.json (default: ${default})."`
}

type fitCommand struct {
	dataFlags
	newModel
	cli.QuietFlag
	checkpointFlags
	metricsFlag
	FirstDay bool `help:"Make a model of tools none of which was worn, which says that a tool is different from before, not that it is worn. Windows without a label are taken for healthy."`
	Fresh    bool `help:"Begin again, even if an earlier run of the same command was cut off and left networks in .checkpoint next to the model."`
}

// checkpointFlags say how much work a run that is cut off may lose.
type checkpointFlags struct {
	CheckpointEvery time.Duration `default:"30s" placeholder:"TIME" help:"After how long the state of a network in training is written down again, at the end of an epoch (default: 30s). A run that is cut off, started again with the same command, goes on from there."`
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	return cli.Run(ctx, new(flags), program, description, args, stdout, stderr)
}

// Run trains a model.
func (f *fitCommand) Run(ctx context.Context, out cli.Output) error {
	_, err := f.train(ctx, out)
	return err
}

// train trains a model, and writes it with its card, its report, and the metrics of the run.
func (f *fitCommand) train(ctx context.Context, out cli.Output) (*card.Report, error) {
	if err := f.metricsFlag.check(); err != nil {
		return nil, err
	}
	began := time.Now()
	report, err := f.fit(ctx, out)
	return report, errors.Join(err, f.metricsFlag.write(ran{began, time.Now(), report}))
}

// fitFirstDay makes a model that has seen no worn tool, and writes it with its card and its report. What it returns has what metrics
// say of it.
func (f *fitCommand) fitFirstDay(ctx context.Context, job train.Job, out cli.Output) (*card.Report, error) {
	m, report, err := train.FirstDay(ctx, job)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(report.Save(nextTo(f.Model, ".report"), config.WriteFile), m.Save(f.Model)); err != nil {
		return nil, err
	}
	fmt.Fprintln(out.Stdout, report.Summary())
	f.sayFiles(m, out)
	return &card.Report{Model: report.Model, Windows: report.Windows}, nil
}

func (f *fitCommand) sayFiles(m *model.Model, out cli.Output) {
	fmt.Fprintf(out.Stdout, "model   %s (%s)\ncard    %s\nreport  %s\n", f.Model, m.ID(), nextTo(f.Model, ".report.html"), nextTo(f.Model, ".report.json"))
}

// fit trains a model. The report is nil if no model was written.
func (f *fitCommand) fit(ctx context.Context, out cli.Output) (*card.Report, error) {
	job := train.Job{Program: cli.Version(), Log: cli.Logger(out.Stderr, zerolog.InfoLevel)}
	if err := cli.CheckFolder("--model", f.Model); err != nil {
		return nil, err
	}
	d, err := f.load(job.Log)
	if err != nil {
		return nil, err
	}
	job.Config, job.Layout, job.Columns, job.Inputs, job.Wear = d.Config, d.Layout, d.Columns, d.Inputs, d.Wear
	p := f.Progress(out.Stderr)
	defer p.Close()
	job.Progress, job.Scratch = p.Report, filepath.Dir(f.Model)
	if f.FirstDay {
		return f.fitFirstDay(ctx, job, out)
	}
	checkpoint := nextTo(f.Model, ".checkpoint")
	for _, path := range []string{f.Model, nextTo(f.Model, ".report.html"), nextTo(f.Model, ".report.json")} {
		if err := train.RemoveUnfinished(path); err != nil {
			return nil, err
		}
	}
	point, err := train.OpenCheckpoint(checkpoint, f.CheckpointEvery, time.Now)
	if err != nil {
		return nil, err
	}
	if f.Fresh {
		if _, err := point.Remove(); err != nil {
			return nil, err
		}
	}
	job.Keep = point
	m, report, err := train.Run(ctx, job)
	if errors.Is(err, context.Canceled) {
		return nil, fmt.Errorf("stopped before the model was trained: no model is written; the same command goes on with what is in %s", checkpoint)
	}
	if err != nil {
		return nil, err
	}
	if n := point.Resumed(); n > 0 {
		job.Log.Info().Int("networks", n).Msg("went on with networks that an earlier run had trained or begun")
	}
	if err := saveModel(m, report, f.Model); err != nil {
		return nil, err
	}
	unused, err := point.Remove()
	if err != nil {
		return nil, err
	}
	if unused > 0 {
		job.Log.Warn().Int("networks", unused).Msg("an earlier run was cut off that had other data or settings: networks that it left were of no use and are removed")
	}
	fmt.Fprintln(out.Stdout, report.Summary())
	f.sayFiles(m, out)
	return report, nil
}

// nextTo returns the name of a file next to a model, or to another file.
func nextTo(path, ending string) string { return strings.TrimSuffix(path, filepath.Ext(path)) + ending }

// saveModel writes a model to path, with its card and its report next to it.
func saveModel(m *model.Model, report *card.Report, path string) error {
	if err := report.Save(nextTo(path, ".report"), config.WriteFile); err != nil {
		return err
	}
	return m.Save(path)
}
