package train

import (
	"context"
	"errors"

	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
)

// Lessons returns the windows with a label that the job's model learns from, all of one
// tool together: as a table, and as the classifier takes them; and the model, complete but
// for its classifier and for what is learnt with it. If the mode of the reference is auto, features
// are as before the reference. The job's features must fit in memory: no input may have Scan.
func Lessons(ctx context.Context, job Job) (*table.Table, *classify.Table, *model.Model, error) {
	for _, in := range job.Inputs {
		if in.Scan != nil || in.Large {
			return nil, nil, nil, errors.New("train: lessons are held in memory, and an input is read row by row")
		}
	}
	job.prepare()
	rows, m, _, err := job.rows(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	return rows.Table, rows.lessons(job.Config.Reference.Windows), m, nil
}
