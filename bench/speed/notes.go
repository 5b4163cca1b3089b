//go:build unix

package main

// method is at the top of the document.
const method = "Both sides of a figure are asked in turn in one run, in processes of their own; quoted are medians over the rounds, and the median of the ratios of a round. " +
	"Products and decisions take the best of many short trials in each round, which is one that nothing interrupted. " +
	"Seconds of the processor leave out the time in which other programs had the core; where two cores are at stake there is only the clock, and other load tells."

// notes end the document: what is behind figures that do not hold, or not always.
const notes = `## What is behind figures that do not hold, or not always

**Products at RBM shapes.** 100×196×50 has just under the 10⁶ multiply-adds below which OpenBLAS takes kernels for small matrices, and 50 columns are
three vectors and two columns over. A masked fourth vector took 1.2× its time, half a vector on AVX2 tiles and eight rows to a tile for the other 48
columns 1.14×. The last columns as dot products along the rows of A, whole vectors of A times both columns, brought that to 1.00× (all of
best trials on an AMD EPYC with AVX-512); the 48 other columns are at OpenBLAS's own speed, and what is left is the spread of a run.
Tried without gain: tiles without masks where a vector is full, results of dot products stored without masks.

**AVX2 500 to 1024 wide.** Tried: loads and stores without masks where a vector is full (1.4× to 1.25×); rows of A packed into tiles (to 1.2×);
rows of B packed by a vector loop instead of copy (1.26× to about 1.0× at 128 rows). All kept; what is left is within the spread of a busy machine.

**Portable Go against gonum.** gonum's inner loops for float32 are SSE assembly on amd64, four lanes wide; ours are Go. The portable family is for
processors without our assembly, where gonum has none either. Rows of C that stay in the second cache, a part of them at a time, are what products of
500 and more columns gained most from (4096×500×500: 1.36× to 1.05× on an AMD EPYC). Behind, at 1.2× to 1.3× there, is the product with B transposed, 500
wide, for which gonum has a dot product of its own. Tried for it: blocks of B for the first cache (no gain, kept out); two steps of the inner dimension in
one of the loop (three percent, kept), four (no more); two rows by four, three by three, and two by four in blocks between which the compiler cannot move
instructions (all slower: sums leave the registers); five and six steps of the inner dimension for each row of C where B is not transposed (no gain).
Scalar additions and multiplications are then at four fifths of what the processor can start in a cycle.

**The second core.** Workers meet once a batch, every 0.1 ms or less at 100 rows. Helpers look for work before they sleep, and shards of 64 rows give
batches of 100 two of them. What stays on one core is the sum of the shards' gradients and the step of the optimizer. Where other programs use the cores,
a helper is taken off its core in the middle of a batch, or shares the core of the first worker: so the gain is taken from the best of many short epochs.
Tried without gain: to look at the shared counters many times between two calls of the scheduler. Fits by out-of-fold posteriors train whole networks
side by side instead and do not need it.

**The paper's scale.** A sixth of an epoch went into shuffling 13.8 million row numbers, on one core, and as much into fetching rows one by one. Very many
rows are now shuffled by runs of 1 KiB, and then within each MiB of them; parts of 4 and 16 MiB were slower, runs of 4 KiB no faster. Before that: fetching
the ends of all rows of a batch before copying any (a fifth off an epoch of pre-training, a third off one of fine-tuning, at 10⁶ rows); one
exponential for two classes instead of four; squares and sums of a whole batch in one call. The rest is arithmetic, most of it products and σ.
`
