package model

import (
	"errors"
	"fmt"

	"github.com/flank-tcm/flank/pkg/signal"
)

// CheckDeployable reports why a model must not be rolled out to monitors that it was not
// copied to by hand: it cannot prove there that it computes what its trainer computed, or
// its features are of another version than this program extracts. A model with weights
// that are not finite cannot be decoded in the first place.
func (m *Model) CheckDeployable() error {
	x, err := m.extractor()
	if err != nil {
		return err
	}
	switch v := x.Spec().Version; {
	case len(m.Golden) == 0:
		return errors.New("it has no golden vectors, so no monitor can check it: train it again with `trainer fit`")
	case m.Wear != nil && len(m.GoldenWear) == 0:
		return errors.New("it estimates wear and has no golden vectors of wear, so no monitor can check it: train it again with `trainer fit`")
	case v != signal.FeatureVersion:
		return fmt.Errorf("it takes features of version %d, and monitors extract version %d: train it again with this release of `trainer fit`", v, signal.FeatureVersion)
	}
	return nil
}
