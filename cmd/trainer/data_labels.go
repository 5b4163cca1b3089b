package main

import (
	"cmp"
	"errors"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/pkg/model"
)

// namesWindows reports whether flags ask for windows or features, and not for labels alone.
func (f inputFlags) namesWindows() bool {
	return len(f.Data)+len(f.Table)+len(f.More) > 0 || cmp.Or(f.Source, fromAuto) != fromAuto || f.Bounded()
}

// LoadLabels finds labels that came after m was trained, and what data flags name next to them. Of Kafka it takes labels alone,
// unless --from, --since or --until says which windows or features to read.
func (f inputFlags) loadLabels(m *model.Model, flag, file string, of examinedFlags, log zerolog.Logger) (*dataset, error) {
	if f.namesWindows() {
		return f.loadFor(m, flag, file, of, log)
	}
	d := &dataset{Config: train.DefaultConfig(), Layout: m.Layout}
	if file != "" {
		var err error
		if d.Config, err = train.LoadConfig(file); err != nil {
			return nil, err
		}
	} else {
		d.Config.Join = train.JoinOf(m)
	}
	path := f.wearPath(file, d.Config)
	switch {
	case path == "" && !f.ofKafka():
		return nil, errors.New("no labels: name a wear file with --wear, labels on Kafka with --labels floor or all, or labelled windows with --data, --table or --kafka and --from")
	case f.ofKafka() && !f.kafkaFlags.Named():
		return nil, errors.New("--labels: they are on Kafka, name the broker with --kafka")
	}
	if err := d.measure(f, path, log); err != nil {
		return nil, err
	}
	return d, nil
}
