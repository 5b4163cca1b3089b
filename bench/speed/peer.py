"""NumPy, SciPy, scikit-learn and PyTorch as a peer of bench.

Reads requests from standard input and answers each with wall and processor
seconds; see peer.go. What was asked for is kept for the next time.
"""

import sys
import time

import numpy as np


def timed(run):
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - wall, time.process_time() - cpu


def rows(n, inputs):
    rng = np.random.default_rng(1)
    return rng.random((n, inputs), dtype=np.float32), rng.integers(0, 2, n)


def torch_cd1(n, inputs, hidden, batch, threads):
    """An epoch of CD-1 with momentum and weight decay, as pkg/dbn makes it."""
    import torch

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    x = torch.from_numpy(rows(n, inputs)[0])
    w = 0.01 * torch.randn(inputs, hidden)
    a, b = torch.zeros(inputs), torch.zeros(hidden)
    dw, da, db = torch.zeros_like(w), torch.zeros_like(a), torch.zeros_like(b)
    rate, momentum, decay = 0.05, 0.5, 2e-4

    def epoch():
        torch.set_num_threads(threads)
        with torch.inference_mode():
            order = torch.randperm(n)
            for start in range(0, n, batch):
                v0 = x[order[start : start + batch]]
                h0 = torch.addmm(b, v0, w).sigmoid_()
                states = torch.bernoulli(h0)
                v1 = torch.addmm(a, states, w.t()).sigmoid_()
                h1 = torch.addmm(b, v1, w).sigmoid_()
                scale = rate / len(v0)
                dw.mul_(momentum).addmm_(v0.t(), h0, alpha=scale).addmm_(v1.t(), h1, alpha=-scale).sub_(w, alpha=rate * decay)
                da.mul_(momentum).add_((v0 - v1).sum(0), alpha=scale)
                db.mul_(momentum).add_((h0 - h1).sum(0), alpha=scale)
                w.add_(dw)
                a.add_(da)
                b.add_(db)

    return epoch


def torch_finetune(n, inputs, hidden, batch, threads):
    """An epoch of Adam on the cross-entropy of a network for two classes."""
    import torch

    torch.set_num_threads(threads)
    x, y = rows(n, inputs)
    x, y = torch.from_numpy(x), torch.from_numpy(y)
    net = torch.nn.Sequential(torch.nn.Linear(inputs, hidden), torch.nn.Sigmoid(), torch.nn.Linear(hidden, 2))
    loss = torch.nn.CrossEntropyLoss()
    adam = torch.optim.Adam(net.parameters(), lr=0.005, weight_decay=3e-4, fused=True)

    def epoch():
        torch.set_num_threads(threads)
        with torch.enable_grad():
            order = torch.randperm(n)
            for start in range(0, n, batch):
                part = order[start : start + batch]
                adam.zero_grad(set_to_none=True)
                loss(net(x[part]), y[part]).backward()
                adam.step()

    return epoch


def numpy_cd1(n, inputs, hidden, batch, _):
    """The same epoch as torch_cd1 in NumPy."""
    x, _ = rows(n, inputs)
    rng = np.random.default_rng(2)
    w = (0.01 * rng.standard_normal((inputs, hidden))).astype(np.float32)
    a, b = np.zeros(inputs, np.float32), np.zeros(hidden, np.float32)
    dw, da, db = np.zeros_like(w), np.zeros_like(a), np.zeros_like(b)

    def sigmoid(z):
        np.negative(z, out=z)
        np.exp(z, out=z)
        z += 1
        return np.reciprocal(z, out=z)

    def epoch():
        nonlocal dw, da, db, w, a, b
        order = rng.permutation(n)
        for start in range(0, n, batch):
            v0 = x[order[start : start + batch]]
            h0 = sigmoid(v0 @ w + b)
            states = (rng.random(h0.shape, dtype=np.float32) < h0).astype(np.float32)
            v1 = sigmoid(states @ w.T + a)
            h1 = sigmoid(v1 @ w + b)
            scale = np.float32(0.05 / len(v0))
            dw = 0.5 * dw + scale * (v0.T @ h0 - v1.T @ h1) - np.float32(1e-5) * w
            da = 0.5 * da + scale * (v0 - v1).sum(0)
            db = 0.5 * db + scale * (h0 - h1).sum(0)
            w += dw
            a += da
            b += db

    return epoch


def sklearn_cd1(n, inputs, hidden, batch, _):
    """An epoch of scikit-learn's BernoulliRBM, which learns by persistent CD."""
    from sklearn.neural_network import BernoulliRBM

    x, _ = rows(n, inputs)
    return lambda: BernoulliRBM(hidden, batch_size=batch, n_iter=1, random_state=0).fit(x)


def posteriors(n):
    rng = np.random.default_rng(1)
    y = (rng.random(n) < 0.5).astype(np.int8)
    z = rng.standard_normal((n, 2), dtype=np.float32)
    z[:, 1] -= np.float32(np.log(2))
    z[np.arange(n), y] += np.float32(1.5)
    p = np.exp(z)
    p /= p.sum(1, keepdims=True)
    return p, y


def scipy_de(n, evaluations):
    """differential_evolution on the G-mean of two costs, as one would write it."""
    from scipy.optimize import differential_evolution

    p, y = posteriors(n)
    positive = y == 1
    counts = (~positive).sum(), positive.sum()

    def loss(costs):
        decision = p[:, 1] * np.float32(1 - costs[1]) > p[:, 0] * np.float32(1 - costs[0])
        right1 = np.count_nonzero(decision & positive)
        right0 = counts[0] - (np.count_nonzero(decision) - right1)
        return -np.sqrt(right0 / counts[0] * right1 / counts[1])

    population = 30
    generations = evaluations // population - 1

    def run():
        found = differential_evolution(loss, [(0, 1), (0, 1)], popsize=population // 2, maxiter=generations, tol=0, polish=False, seed=1)
        assert abs(found.nfev - evaluations) <= population, found.nfev

    return run


def numpy_sweep(n, part):
    """The exact optimum for two classes: sort by odds, then cumulative sums."""
    p, y = posteriors(n)

    def order():
        odds = p[:, 1] / p[:, 0]
        at = np.argsort(odds)
        return odds[at], y[at]

    def sweep(odds, label):
        right1 = np.cumsum(label, dtype=np.int64)
        right0 = np.arange(1, n + 1) - right1
        product = right0 * (right1[-1] - right1)
        product[:-1][odds[:-1] == odds[1:]] = 0
        return odds[product.argmax()]

    if part == "sweep":
        odds, label = order()
        return lambda: sweep(odds, label)
    return lambda: sweep(*order())


def versions():
    import platform

    import scipy
    import sklearn
    import torch

    return (
        f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}, "
        f"scikit-learn {sklearn.__version__}, PyTorch {torch.__version__}"
    )


MAKERS = {
    "torch-cd1": torch_cd1,
    "torch-finetune": torch_finetune,
    "numpy-cd1": numpy_cd1,
    "sklearn-cd1": sklearn_cd1,
    "scipy-de": scipy_de,
    "numpy-sweep": numpy_sweep,
}


def main():
    made = {}
    for line in sys.stdin:
        request = line.strip()
        try:
            if request == "version":
                print(versions(), flush=True)
                continue
            if request not in made:
                name, *words = request.split()
                made[request] = MAKERS[name](*(int(w) if w.isdigit() else w for w in words))
                if name != "scipy-de":  # too long to do for nothing
                    made[request]()
            print("%.9f %.9f" % timed(made[request]), flush=True)
        except Exception as e:  # answered, so that bench can say who failed
            print("error:", repr(e).replace("\n", " "), flush=True)


main()
