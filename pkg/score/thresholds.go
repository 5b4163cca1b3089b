package score

// What weights go by. Behind each number: its unit, and the page of docs/algorithm that says it, in these words; package
// classify compares them. Above it: where it was measured, if it was.
const (
	// LeastTools is how many lives it takes: with two of them the tools' agreement
	// says too little. (On PHM 2010, with two cutters to learn from, weights lose
	// 0.03 to 0.05 of G-mean.)
	LeastTools = 3 // tools; stability.md: "where fewer than three tools went on"
	// LeastShare is the share of the squared weights of all columns from which on a sensor counts.
	LeastShare = 0.01 // share; guard.md: "≥ 0.01·Σ w²"

	// A tool with fewer windows has no trend to speak of.
	leastRows = 3 // windows; stability.md: "Tools of fewer than three windows"
	// Of a longer life, that many rows evenly spread: a rank correlation of more
	// says the same.
	mostRows = 1000 // windows; stability.md: "windows 1,000 are taken"

	// The standard deviation between tools is shrunk towards priorSD as if
	// priorTools more had been seen: of three tools it is known to a factor of two.
	priorSD    = 0.3 // correlation; stability.md: "shrunk towards 0.3"
	priorTools = 2   // tools; stability.md: "as if two more tools had been seen"
)
