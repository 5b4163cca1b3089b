package main

import (
	"slices"
	"strings"
)

// ours are the names of methods whose title is not their name in capitals.
var ours = map[string]string{
	"ecs-dbn":               "ECS-DBN",
	"ecs-dbn-paper":         "ECS-DBN, paper's settings",
	"dbn":                   "DBN",
	"dbn-paper":             "DBN, paper's settings",
	"csdbn":                 "CSDBN, random costs",
	"grid-dbn":              "DBN, grid of costs",
	"threshold-dbn":         "DBN, exact threshold",
	"smote-dbn":             "SMOTE-DBN",
	"adasyn-dbn":            "ADASYN-DBN",
	"smote-borderline1-dbn": "SMOTE-borderline1-DBN",
	"smote-borderline2-dbn": "SMOTE-borderline2-DBN",
	"smote-svm-dbn":         "SMOTE-SVM-DBN",
	"welm-w1":               "WELM, W1",
	"welm-w2":               "WELM, W2",
	"eco-ensemble":          "ECO-style ensemble",
}

// peers are Python's classifiers: title and what it is.
var peers = map[string][2]string{
	"svm":               {"SVM", "SVC, RBF kernel; defaults, standardised"},
	"mlp":               {"MLP", "MLPClassifier; defaults, standardised"},
	"knn":               {"KNN", "KNeighborsClassifier; defaults, standardised"},
	"gb":                {"gradient boosting", "GradientBoostingClassifier; defaults"},
	"logistic":          {"logistic regression", "LogisticRegression; defaults, standardised"},
	"adaboost":          {"AdaBoost", "AdaBoostClassifier; defaults"},
	"lasso":             {"Lasso", "LogisticRegression with an L1 penalty, C = 1, standardised"},
	"sgd":               {"SGD", "SGDClassifier; defaults, standardised"},
	"logistic-balanced": {"logistic regression, balanced", "LogisticRegression with balanced class weights, standardised"},
	"extratrees-tuned":  {"extra trees, tuned", "ExtraTreesClassifier of 300, threshold tuned"},
	"rf-tuned":          {"random forest, tuned", "RandomForestClassifier of 300, threshold tuned"},
	"mlp-tuned":         {"MLP (30, 30), tuned", "MLPClassifier (30, 30), 500 epochs, standardised, threshold tuned"},
	"hgb-tuned":         {"histogram boosting, tuned", "HistGradientBoostingClassifier, threshold tuned"},
	"balanced-rf":       {"BalancedRandomForest", "imbalanced-learn, 300 trees"},
	"easy-ensemble":     {"EasyEnsemble", "imbalanced-learn; defaults"},
	"balanced-bagging":  {"BalancedBagging", "imbalanced-learn, 50 trees"},
	"rusboost":          {"RUSBoost", "imbalanced-learn; defaults"},
	"lightgbm-balanced": {"LightGBM, balanced", "LGBMClassifier with balanced class weights"},
	"lightgbm-tuned":    {"LightGBM, tuned", "LGBMClassifier, threshold tuned"},
}

// title returns what pages call a method.
func title(method string) string {
	if t, ok := ours[method]; ok {
		return t
	}
	if p, ok := peers[method]; ok {
		return p[0]
	}
	return method
}

func isPeer(method string) bool {
	_, ok := peers[method]
	return ok
}

// ofPaper returns our method for a column of the paper's tables, with the
// study's settings.
func ofPaper(column string) string { return strings.ToLower(column) }

// atPaperSettings returns the same with the paper's settings, if there is one
// among methods.
func atPaperSettings(column string, methods []string) (string, bool) {
	name := strings.ToLower(column) + "-paper"
	return name, slices.Contains(methods, name)
}
