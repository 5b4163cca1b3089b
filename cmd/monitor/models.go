package main

import (
	"fmt"

	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/deploy"
)

// modelSettings says whose models and deployments of tcm.models.v1 count.
type modelSettings struct {
	Keys []string `yaml:"keys"` // files of public keys, as `trainer keys new` writes them
}

// deployed reports whether models come from tcm.models.v1. It reports a configuration that
// says two things, or none.
func (c settings) deployed(insecure bool) (bool, error) {
	topic := insecure || len(c.Models.Keys) > 0
	switch {
	case topic && c.Model != "":
		return false, fmt.Errorf("%s: model names a file, and models.keys or --insecure-models says that models come from tcm.models.v1: remove one of them", c.file)
	case !topic && c.Model == "":
		return false, c.errNoModel()
	}
	return topic, nil
}

// keys reads the public keys. It is called again while the monitor runs, so that a key may
// be added or replaced.
func (c settings) keys(insecure bool) func() (deploy.Keys, error) {
	return func() (deploy.Keys, error) {
		files := make([]string, len(c.Models.Keys))
		for i, f := range c.Models.Keys {
			files[i] = config.ResolvePath(c.file, f)
		}
		keys, err := deploy.LoadKeys(insecure, files...)
		if err != nil {
			return keys, fmt.Errorf("%s: models.keys: %w", c.file, err)
		}
		return keys, nil
	}
}
