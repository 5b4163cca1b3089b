package score_test

import (
	"encoding/json"
	"math"
	"os"
	"reflect"
	"testing"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/score"
)

// TestAgainstScikitLearn holds every metric to testdata/scikit-learn.json, which
// `make peers` computes again and compares.
func TestAgainstScikitLearn(t *testing.T) {
	text, err := os.ReadFile("testdata/scikit-learn.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cases []struct {
			Name             string
			Classes          int
			Y                []int
			Posterior        []float64
			Confusion        score.Confusion
			Accuracy         float64
			Precision        float64
			Recall           float64
			F1               float64
			Specificity      float64
			GMean            float64
			BalancedAccuracy float64 `json:"balanced_accuracy"`
			MCC              float64
			AUC              float64
			HardAUC          float64 `json:"auc_hard_labels"`
			AveragePrecision float64 `json:"average_precision"`
			Brier            float64
			Recalls          []float64
			AUCs             []float64 `json:"auc_one_vs_rest"`
			ROC              struct{ FPR, TPR, Threshold []float64 }
			PR               struct{ Precision, Recall []float64 }
			Reliability      struct{ Predicted, Observed []float64 }
			Temperature      float64
		}
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) != 3 {
		t.Fatalf("%d cases", len(file.Cases))
	}
	for _, c := range file.Cases {
		t.Run(c.Name, func(t *testing.T) {
			k := c.Classes
			equal := make(classify.CostVector, k)
			decisions, scores, positive := make([]int, len(c.Y)), make([]float64, len(c.Y)), make([]bool, len(c.Y))
			counts := make([]int, k)
			for _, label := range c.Y {
				counts[label]++
			}
			streamed := score.NewAssessor(counts)
			for i, label := range c.Y {
				decisions[i] = equal.Decide(c.Posterior[i*k : (i+1)*k])
				streamed.Add(label, decisions[i], c.Posterior[i*k:(i+1)*k])
				scores[i], positive[i] = c.Posterior[i*k+k-1], label == k-1
			}
			s := score.Assess(c.Y, decisions, c.Posterior, k)
			if got := streamed.Summary(); !reflect.DeepEqual(got, s) {
				t.Errorf("row by row %+v, all at once %+v", got, s)
			}
			for i := range c.Confusion {
				for j, n := range c.Confusion[i] {
					if s.Confusion[i][j] != n {
						t.Errorf("confusion %v, want %v", s.Confusion, c.Confusion)
					}
				}
			}
			near(t, "accuracy", float64(s.Accuracy), c.Accuracy)
			near(t, "precision", float64(s.Precision), c.Precision)
			near(t, "recall", float64(s.Recall), c.Recall)
			near(t, "F1", float64(s.F1), c.F1)
			near(t, "specificity", float64(s.Specificity), c.Specificity)
			near(t, "G-mean", float64(s.GMean), c.GMean)
			near(t, "balanced accuracy", float64(s.BalancedAccuracy), c.BalancedAccuracy)
			near(t, "MCC", float64(s.MCC), c.MCC)
			near(t, "AUC", float64(s.AUC), c.AUC)
			near(t, "AUC of hard labels", float64(s.HardAUC), c.HardAUC)
			near(t, "Brier score", float64(s.Brier), c.Brier)
			near(t, "average precision", score.AveragePrecision(scores, positive), c.AveragePrecision)
			if k > 2 && (len(s.Recalls) != k || len(s.AUCs) != k) || k == 2 && s.Recalls != nil {
				t.Fatalf("recalls %v and areas %v of %d classes", s.Recalls, s.AUCs, k)
			}
			for j := range s.Recalls {
				near(t, "recall of a class", float64(s.Recalls[j]), c.Recalls[j])
				near(t, "AUC of a class", float64(s.AUCs[j]), c.AUCs[j])
			}

			points := score.OperatingPoints(scores, positive)
			end := points[len(points)-1]
			if len(points) != len(c.ROC.FPR) || len(points) != len(c.PR.Recall) {
				t.Fatalf("%d operating points, scikit-learn has %d and %d", len(points), len(c.ROC.FPR), len(c.PR.Recall))
			}
			for i, p := range points {
				near(t, "false positive rate", float64(p.FP)/float64(end.FP), c.ROC.FPR[i])
				near(t, "true positive rate", float64(p.TP)/float64(end.TP), c.ROC.TPR[i])
				near(t, "recall on the curve", float64(p.TP)/float64(end.TP), c.PR.Recall[i])
				if i > 0 {
					near(t, "threshold", p.Threshold, c.ROC.Threshold[i-1])
					near(t, "precision on the curve", float64(p.TP)/float64(p.TP+p.FP), c.PR.Precision[i])
				}
			}
			bins := score.Reliability(scores, positive, 10)
			if len(bins) != len(c.Reliability.Predicted) {
				t.Fatalf("%d bins, want %d", len(bins), len(c.Reliability.Predicted))
			}
			for i, b := range bins {
				near(t, "predicted", b.Predicted, c.Reliability.Predicted[i])
				near(t, "observed", b.Observed, c.Reliability.Observed[i])
			}
			if got := classify.Temperature(c.Posterior, c.Y, k); math.Abs(got-c.Temperature) > 1e-6 {
				t.Errorf("temperature %v, want %v", got, c.Temperature)
			}
		})
	}
}
