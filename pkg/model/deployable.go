package model

import "errors"

// CheckDeployable reports why a model must not be rolled out to monitors that it was not
// copied to by hand: it cannot prove there that it computes what its trainer computed, or
// its features are of another version than this program extracts. A model with weights
// that are not finite cannot be decoded in the first place.
func (m *Model) CheckDeployable() error {
	if _, err := m.extractor(); err != nil {
		return err
	}
	switch {
	case len(m.Golden) == 0:
		return errors.New("it has no golden vectors, so no monitor can check it: train it again with `trainer fit`")
	case m.Wear != nil && len(m.GoldenWear) == 0:
		return errors.New("it estimates wear and has no golden vectors of wear, so no monitor can check it: train it again with `trainer fit`")
	}
	return nil
}
