"""The default features of version 2 on a second of the gun drill: Flank beside NumPy and SciPy.

Twelve channels of 20,000 samples. Both sides take turns on one core; medians of processor time
and their ratio are printed, so that other work on the machine matters little. Thrust and torque
are Flank's burden alone. Run by `make peers-signal-bench`, which passes the test program of
pkg/signal.
"""

import os

for name in "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS":
    os.environ[name] = "1"

import statistics
import subprocess
import sys
import time

import numpy as np

import features

ROUNDS = 9


def numpy_ms(x):
    start = time.process_time()
    features.extract(x, features.RATE, features.RPM)
    return 1e3 * (time.process_time() - start)


def flank_seconds(program, windows):
    """Processor time of a run over so many windows, start-up included."""
    before = os.times()
    subprocess.run([program, "-test.run", "^$", "-test.bench", "^BenchmarkExtract/version_2$", "-test.benchtime", f"{windows}x", "-test.cpu", "1"],
                   check=True, stdout=subprocess.DEVNULL, cwd=os.path.dirname(program))
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def flank_ms(program):
    few, many = 50, 450
    return 1e3 * (flank_seconds(program, many) - flank_seconds(program, few)) / (many - few)


def main():
    program = os.path.abspath(sys.argv[1])
    core = min(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    rng = np.random.default_rng(1)
    x = rng.standard_normal((12, 20_000)).astype(np.float32)
    numpy_ms(x)
    ours, theirs = [], []
    for _ in range(ROUNDS):
        theirs.append(numpy_ms(x))
        ours.append(flank_ms(program))
    a, b = statistics.median(ours), statistics.median(theirs)
    print(f"flank {a:.2f} ms ({min(ours):.2f} to {max(ours):.2f}), NumPy and SciPy {b:.1f} ms ({min(theirs):.1f} to {max(theirs):.1f}): "
          f"{b / a:.1f} times as fast, {1000 / a:.0f} times real time; medians of {ROUNDS} rounds in turn, processor time of one core")


if __name__ == "__main__":
    main()
