// OpenBLAS by its C interface, as a peer of bench: reads requests from standard
// input and answers each with wall and processor seconds. See ../peer.go. The
// library is from the Python package scipy-openblas32, which prefixes names.

#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double seconds(clockid_t clock) {
	struct timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec + 1e-9 * t.tv_nsec;
}

static float *randoms(size_t n) {
	float *x = aligned_alloc(64, (n * sizeof *x + 63) / 64 * 64);
	for (size_t i = 0; i < n; i++)
		x[i] = rand() / (float)RAND_MAX - 0.5f;
	return x;
}

int main(void) {
	char line[256], op[8];
	int m, n, k, repetitions, trials;
	// The operands of the last shape are kept, so that a request times nothing else.
	char last[256] = "";
	float *a = NULL, *b = NULL, *c = NULL;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while (fgets(line, sizeof line, stdin)) {
		line[strcspn(line, "\n")] = 0;
		if (!strcmp(line, "version")) {
			printf("%s, core %s, %d threads\n", scipy_openblas_get_config(), scipy_openblas_get_corename(), scipy_openblas_get_num_threads());
			continue;
		}
		if (sscanf(line, "gemm %7s %d %d %d %d %d", op, &m, &n, &k, &repetitions, &trials) != 6) {
			printf("error: request %s\n", line);
			continue;
		}
		if (strcmp(line, last)) {
			free(a), free(b), free(c);
			a = randoms((size_t)m * k), b = randoms((size_t)k * n), c = randoms((size_t)m * n);
			strcpy(last, line);
		}
		CBLAS_TRANSPOSE ta = strcmp(op, "tn") ? CblasNoTrans : CblasTrans;
		CBLAS_TRANSPOSE tb = strcmp(op, "nt") ? CblasNoTrans : CblasTrans;
		// The best of several short trials is one that nothing interrupted.
		double bestWall = 1e9, bestCPU = 1e9;
		for (int trial = 0; trial < trials; trial++) {
			double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
			for (int i = 0; i < repetitions; i++)
				scipy_cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, 1, a, ta == CblasTrans ? m : k, b, tb == CblasTrans ? k : n, 0, c, n);
			wall = seconds(CLOCK_MONOTONIC) - wall, cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
			bestWall = wall < bestWall ? wall : bestWall, bestCPU = cpu < bestCPU ? cpu : bestCPU;
		}
		printf("%.9f %.9f\n", bestWall, bestCPU);
	}
	return 0;
}
