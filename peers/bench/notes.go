//go:build unix

package main

// method is said at the top of the document.
const method = "Both sides of a figure are asked in turn in one run, in processes of their own; quoted are medians over the rounds, and the median of the ratios of a round. " +
	"Products and decisions take the best of many short trials in each round, which is one that nothing interrupted. " +
	"Seconds of the processor leave out the time in which other programs had the core; where two cores are at stake there is only the clock, and other load tells."

// notes end the document: what is behind figures that do not hold, or not always.
const notes = `## What is behind figures that do not hold, or not always

**Products at RBM shapes.** One shape is behind OpenBLAS: 100×196×50, which has just under the 10⁶ multiply-adds below which OpenBLAS takes
kernels for small matrices. 50 columns are three vectors and two columns over. Tried: a masked fourth vector (1.2× its time); half a vector for
the last columns, on AVX2 tiles (1.14×; kept); narrower tiles of eight rows for the other 48 columns (kept, part of the same figure).
Not tried: the last columns as dot products along the rows of A, which would save another tenth.

**AVX2 500 to 1024 wide.** Tried: loads and stores without masks where a vector is full (1.4× to 1.25×); rows of A packed into tiles (to 1.2×);
rows of B packed by a vector loop instead of copy (1.26× to about 1.0× at 128 rows). All kept; what is left is within the spread of a busy machine.

**Portable Go against gonum.** gonum's inner loops for float32 are SSE assembly on amd64, four lanes wide; ours are Go. Tried: two rows by three dot
products (kept), by four (slower: the compiler runs out of registers), two rows by four steps of the inner dimension (kept). The portable family
is for processors without our assembly, where gonum has none either. Measured when the machine was less busy, ratios were 1.0 to 1.2, and 1.3 for the
transposed product 500 wide; a product of this family takes long enough to be interrupted in every trial where the load is high.

**The second core.** Not settled: every run so far shared both cores with other programs, and two workers were anywhere from slower than one to more
than twice as fast. Workers meet once a batch, every 0.1 ms at 100 rows. Helpers look for work before they sleep, and shards of 64 rows give batches of 100 two of
them; both are kept without a measurement on free cores. A helper that the system has taken off its core holds up the batch. Fits by
out-of-fold posteriors train whole networks side by side instead and do not need it.

**The paper's scale.** Tried: fetching the ends of all rows of a batch before copying any (a fifth off an epoch of pre-training, a third off one of
fine-tuning, at 10⁶ rows; kept); one exponential for two classes instead of four, and squares and sums of a whole batch in one call instead of one a
row (kept, not measured alone). At 10⁶ rows one worker takes 0.24 µs of the processor a row in either phase, which is 660 s by two for the
whole; at 13.8·10⁶ rows it is more, because rows come from memory, and a second worker that waits for its core spends time looking for work.
`
