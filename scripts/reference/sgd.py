"""
Compares `admb train` with its default options to SGDRegressor and SGDClassifier of scikit-learn, each with its best
options of a small grid, by two figures:

- progressive: every row is predicted before it is learned, in one pass in the given order;
- test: after some passes over the first part, on the rest (the given test set, or the last fifth).

scikit-learn has two advantages: its options are chosen by the very figure that is shown, and its features are
standardised with the moments of all rows, whereas `admb` uses those of the preceding rows. --past removes the second
advantage from the progressive figure.

    npm run build
    python3 -m venv venv && venv/bin/pip install scikit-learn
    venv/bin/python scripts/reference/sgd.py [--data DIR] [--only NAME] [--flags "admb train flags"]

DIR holds a9a, agaricus, bike_sharing_hour and elec2 as named below; sets that are missing are left out.
"""

import argparse
import csv
import gzip
import itertools
import json
import subprocess
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn import datasets
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.preprocessing import OneHotEncoder, StandardScaler

ROOT = Path(__file__).resolve().parents[2]


class Set:
    """Numeric and categorical columns (or one sparse matrix), targets, and the number of training rows."""

    def __init__(self, kind, numeric, y, categorical=None, train=None, passes=5):
        self.kind, self.numeric, self.y, self.categorical = kind, numeric, y, categorical
        self.train = len(y) * 4 // 5 if train is None else train
        self.passes = passes
        self.past = False

    def matrix(self, past=False):
        """With past, rows are standardised by those before them, as `admb` does."""
        if sparse.issparse(self.numeric):
            return self.numeric.tocsr()
        scaled = standardised_by_past(self.numeric) if past else StandardScaler().fit_transform(self.numeric)
        if self.categorical is None:
            return scaled
        return np.hstack([scaled, OneHotEncoder(sparse_output=False).fit_transform(self.categorical)])

    def write(self, path, rows):
        """Returns the flags with which admb reads the file."""
        if sparse.issparse(self.numeric):
            datasets.dump_svmlight_file(self.numeric[rows], self.y[rows], str(path), zero_based=False)
            return ["--format", "libsvm", "--dimension", str(self.numeric.shape[1])]
        names = [f"n{i}" for i in range(self.numeric.shape[1])]
        groups = [] if self.categorical is None else [f"c{i}" for i in range(self.categorical.shape[1])]
        with open(path, "w", newline="") as file:
            out = csv.writer(file)
            out.writerow(names + groups + ["y"])
            for row in rows:
                extra = [] if self.categorical is None else list(self.categorical[row])
                out.writerow([*self.numeric[row], *extra, self.y[row]])
        flags = ["--format", "csv", "--label", "y", "--scale", "standard"]
        return flags + (["--categorical", ",".join(groups)] if groups else [])


def standardised_by_past(x):
    out = np.zeros_like(x, float)
    mean, squares = np.zeros(x.shape[1]), np.zeros(x.shape[1])
    for n, row in enumerate(x):
        if n > 0:
            deviation = np.sqrt(squares / n)
            out[n] = np.clip((row - mean) / np.where(deviation > 0, deviation, 1), -10, 10) * (deviation > 0)
        difference = row - mean
        mean = mean + difference / (n + 1)
        squares = squares + difference * (row - mean)
    return out


def read_columns(path, label, numeric, categorical):
    with gzip.open(path, "rt", newline="") as file:
        rows = list(csv.DictReader(file))
    number = np.array([[float(row[name]) for name in numeric] for row in rows])
    group = np.array([["v" + row[name] for name in categorical] for row in rows])
    return number, group, [row[label] for row in rows]


def bike(folder):
    numeric = ["yr", "holiday", "workingday", "temp", "atemp", "hum", "windspeed"]
    categorical = ["season", "mnth", "hr", "weekday", "weathersit"]
    x, c, y = read_columns(folder / "bike_sharing_hour.csv.gz", "cnt", numeric, categorical)
    return Set("regression", x, np.array(y, float), c)


def elec2(folder):
    numeric = ["date", "period", "nswprice", "nswdemand", "vicprice", "vicdemand", "transfer"]
    x, c, y = read_columns(folder / "elec2.csv.gz", "class", numeric, ["day"])
    return Set("classification", x, np.array([int(label == "UP") for label in y]), c)


def libsvm(folder, train, test, features):
    x, y = datasets.load_svmlight_file(str(folder / train), n_features=features)
    xt, yt = datasets.load_svmlight_file(str(folder / test), n_features=features)
    labels = np.concatenate([y, yt])
    return Set("classification", sparse.vstack([x, xt]).tocsr(), (labels > 0).astype(int), train=len(y))


def generated(x, y, kind="regression"):
    order = np.random.default_rng(0).permutation(len(y))
    return Set(kind, x[order], y[order], passes=20 if len(y) < 5000 else 5)


SETS = {
    "diabetes": lambda _: generated(*datasets.load_diabetes(return_X_y=True)),
    "make_regression": lambda _: generated(
        *datasets.make_regression(10_000, 20, n_informative=10, noise=50, bias=500, random_state=1)
    ),
    "friedman1": lambda _: generated(*datasets.make_friedman1(10_000, noise=1, random_state=1)),
    "friedman2": lambda _: generated(*datasets.make_friedman2(10_000, noise=100, random_state=1)),
    "bike_sharing": bike,
    "digits": lambda _: generated(*datasets.load_digits(return_X_y=True), "classification"),
    "breast_cancer": lambda _: generated(*datasets.load_breast_cancer(return_X_y=True), "classification"),
    "a9a": lambda folder: libsvm(folder, "a9a.libsvm.gz", "a9a.t.libsvm.gz", 123),
    "agaricus": lambda folder: libsvm(folder, "agaricus.train.libsvm.gz", "agaricus.test.libsvm.gz", 126),
    "elec2": elec2,
}

GRID = [
    dict(learning_rate=schedule, eta0=eta0, average=average)
    for schedule, eta0, average in itertools.product(["invscaling", "constant"], [0.001, 0.01, 0.1], [False, True])
]


def estimator(data, options, **more):
    if data.kind == "regression":
        return SGDRegressor(random_state=0, **options, **more)
    return SGDClassifier(loss="log_loss", random_state=0, **options, **more)


def figure(data, predicted, y):
    """RMSE, or accuracy in per cent."""
    with np.errstate(over="ignore"):
        if data.kind == "regression":
            return float(np.sqrt(np.mean((predicted - y) ** 2)))
        return float(100 * np.mean(predicted == y))


def progressive(job):
    data, options, rows = job
    x, y = data.matrix(data.past)[:rows], data.y[:rows]
    model = estimator(data, options)
    guesses = np.zeros(rows)
    classes = {} if data.kind == "regression" else {"classes": np.unique(data.y)}
    with np.errstate(all="ignore"):
        for row in range(rows):
            if row > 0:
                guesses[row] = model.predict(x[row : row + 1])[0]
            try:
                model.partial_fit(x[row : row + 1], y[row : row + 1], **classes)
            except ValueError:
                return float("inf") if data.kind == "regression" else 0.0
    return figure(data, guesses, y)


def tested(job):
    data, options, rows = job
    x, y = data.matrix(), data.y
    model = estimator(data, options, max_iter=data.passes, tol=None)
    try:
        model.fit(x[:rows], y[:rows])
    except ValueError:
        return float("inf") if data.kind == "regression" else 0.0
    return figure(data, model.predict(x[rows:]), y[rows:])


def admb(*args):
    command = ["node", str(ROOT / "dist/program/admb.js"), *args, "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])["metrics"]


def admb_figures(data, extra):
    with tempfile.TemporaryDirectory() as folder:
        train, test, every = (Path(folder) / name for name in ["train", "test", "every"])
        rows = np.arange(len(data.y))
        read = data.write(train, rows[: data.train])
        data.write(test, rows[data.train :])
        data.write(every, rows)
        classes = len(np.unique(data.y))
        model = "linear" if data.kind == "regression" else "softmax" if classes > 2 else "logistic"
        flags = [*read, "--model", model, *(["--classes", str(classes)] if model == "softmax" else []), *extra]
        key = "rmse" if data.kind == "regression" else "accuracy"
        once = admb("train", "--data", str(every), *flags)["total"][key]
        passes = ["--passes", str(data.passes), "--shuffle-window", "100000"]
        admb("train", "--data", str(train), *flags, *passes, "--dir", f"{folder}/model")
        reading = [flag for flag in read if flag not in ("--scale", "standard")]
        if "--dimension" in reading:
            reading = reading[: reading.index("--dimension")]
        serving = [part for pair in zip(extra, extra[1:]) if pair[0] == "--predict-with" for part in pair]
        after = admb("eval", "--data", str(test), *reading, *serving, "--dir", f"{folder}/model")[key]
        return (once, after) if data.kind == "regression" else (100 * once, 100 * after)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=ROOT / "shared/data")
    parser.add_argument("--only", action="append")
    parser.add_argument("--flags", default="", help="further flags of admb train")
    parser.add_argument("--no-sklearn", action="store_true")
    parser.add_argument("--past", action="store_true", help="progressive: scikit-learn scales by the preceding rows")
    args = parser.parse_args()
    print(f"{'set':17}{'figure':22}{'admb':>10}{'scikit-learn':>14}   best options")
    with ProcessPoolExecutor() as pool:
        for name, load in SETS.items():
            if args.only and name not in args.only:
                continue
            try:
                data = load(args.data)
            except FileNotFoundError:
                continue
            data.past = args.past
            unit = "RMSE" if data.kind == "regression" else "accuracy %"
            ours = admb_figures(data, args.flags.split())
            for what, mine, run, rows in [
                ("progressive", ours[0], progressive, len(data.y)),
                ("test", ours[1], tested, data.train),
            ]:
                theirs, words = "", ""
                if not args.no_sklearn:
                    found = list(pool.map(run, [(data, options, rows) for options in GRID]))
                    found = [value if np.isfinite(value) else (np.inf if unit == "RMSE" else 0) for value in found]
                    best = int(np.argmin(found) if unit == "RMSE" else np.argmax(found))
                    theirs, words = f"{found[best]:.3f}", " ".join(f"{k}={v}" for k, v in GRID[best].items())
                print(f"{name:17}{what + ' ' + unit:22}{mine:10.3f}{theirs:>14}   {words}", flush=True)


if __name__ == "__main__":
    main()
