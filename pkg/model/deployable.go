package model

import (
	"errors"
	"fmt"

	"github.com/flank-tcm/flank/pkg/signal"
)

// CheckDeployable reports why a model must not be rolled out to machines that it was not
// copied to by hand: it cannot prove that it computes what its trainer computed, or its
// features are of another version than this program extracts. A model that was decoded
// has no weights that are not finite: Decode refuses them.
func (m *Model) CheckDeployable() error {
	switch {
	case len(m.Golden) == 0:
		return errors.New("model: it has no golden vectors, so it cannot be checked where it is used: train it again with `trainer fit`")
	case m.Wear != nil && len(m.GoldenWear) == 0:
		return errors.New("model: it estimates wear and has no golden vectors of wear, so it cannot be checked where it is used: train it again with `trainer fit`")
	case m.Features.Version != signal.FeatureVersion:
		return fmt.Errorf("model: it takes features of version %d, and machines are judged by version %d: train it again with this release of `trainer fit`",
			m.Features.Version, signal.FeatureVersion)
	}
	return nil
}
