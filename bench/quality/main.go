// Quality measures how well an ECS-DBN judges what it was not trained on, and
// what each of its ingredients is worth.
//
//	quality features --turning turning.csv --out features.csv
//	quality report --turning turning.csv --keel keel --peers peers.json --out quality.md
//
// The first writes the features of the turning tools as the classifier takes
// them, for the peers in bench/peers/quality.py; the second trains, scores and writes
// the report. `make peers` and `make quality` call them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "quality:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stderr io.Writer) error {
	if len(args) == 0 {
		return errors.New("say features or report")
	}
	flags := flag.NewFlagSet("quality "+args[0], flag.ContinueOnError)
	flags.SetOutput(stderr)
	turning := flags.String("turning", "", "the turning recording, a CSV `file`")
	keel := flags.String("keel", "", "`directory` of the KEEL sets; empty: without them")
	peers := flags.String("peers", "", "`file` of the peers' scores, by bench/peers/quality.py")
	seeds := flags.Int("seeds", 5, "how many")
	out := flags.String("out", "", "`file` to write")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if *turning == "" || *out == "" {
		return errors.New("--turning and --out must be given")
	}
	rec, err := readRecording(*turning)
	if err != nil {
		return err
	}
	switch args[0] {
	case "features":
		return rec.relative(medianRatio).writeCSV(*out)
	case "report":
		r, err := measure(ctx, rec, *keel, *peers, *seeds, stderr)
		if err != nil {
			return err
		}
		return os.WriteFile(*out, []byte(r.markdown()), 0o644)
	}
	return fmt.Errorf("%q: say features or report", args[0])
}
