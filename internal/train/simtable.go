package train

import (
	"context"

	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/pkg/model"
)

// Table drills the tools and returns the windows of cutting, in order, all of one
// tool together, with their class and wear and with features as they are before a
// reference is taken; and how many of a tool's first windows make its reference in
// the study. Studies that are equal give equal tables.
func (s SimulatorStudy) Table(ctx context.Context) (t *table.Table, reference int, err error) {
	rows, err := s.rows(ctx, false, model.ReferenceOff)
	if err != nil {
		return nil, 0, err
	}
	return rows.Table, historyReference, nil
}
