"""Progressive accuracy and CPU time of River and scikit-learn on one stream, for `npm run -s bench -- streams`.

    python scripts/reference/streams.py FILE LEARNER [LABEL]

FILE is LIBSVM text or, with LABEL, CSV, compressed by gzip. Each row is predicted before it is learned. LEARNER is
`river-logistic` (LogisticRegression with its defaults, after a StandardScaler if the rows are a table), `river-tree` (a Hoeffding adaptive tree) or
`sklearn-sgd` (SGDClassifier with logistic loss after the same scaling, both by `partial_fit` of one row at a time). The last line
of the output is JSON: rows, accuracy, and seconds of CPU time without reading the file.
"""

import csv
import gzip
import json
import sys
import time


def numeric(value: str):
    try:
        return float(value)
    except ValueError:
        return value


def read(path: str, label: str | None):
    with gzip.open(path, "rt") as lines:
        if label is not None:
            for row in csv.DictReader(lines):
                y = row.pop(label)
                yield {key: numeric(value) for key, value in row.items()}, y
            return
        for line in lines:
            y, *pairs = line.split()
            yield {key: float(value) for key, value in (pair.split(":") for pair in pairs)}, y


def river_model(name: str, sparse: bool):
    from river import linear_model, preprocessing, tree

    if name == "river-tree":
        return tree.HoeffdingAdaptiveTreeClassifier(seed=1)
    logistic = linear_model.LogisticRegression()
    return logistic if sparse else preprocessing.StandardScaler() | logistic


def run_river(name: str, rows: list, sparse: bool) -> tuple[float, float]:
    model = river_model(name, sparse)
    positive = rows[0][1]
    start, right = time.process_time(), 0
    for x, y in rows:
        right += model.predict_one(x) == (y == positive)
        model.learn_one(x, y == positive)
    return right / len(rows), time.process_time() - start


def run_sklearn(rows: list, sparse: bool) -> tuple[float, float]:
    import numpy as np
    from sklearn.linear_model import SGDClassifier
    from sklearn.preprocessing import StandardScaler

    names = sorted({key for x, _ in rows for key in x})
    table = np.array([[x.get(name, 0.0) for name in names] for x, _ in rows])
    labels = np.array([y == rows[0][1] for _, y in rows])
    model, scaler = SGDClassifier(loss="log_loss", random_state=1), StandardScaler()
    start, right = time.process_time(), 0
    for i in range(len(rows)):
        one = table[i : i + 1]
        if not sparse:
            one = scaler.partial_fit(one).transform(one)
        right += i > 0 and model.predict(one)[0] == labels[i]
        model.partial_fit(one, labels[i : i + 1], classes=[False, True])
    return right / len(rows), time.process_time() - start


if __name__ == "__main__":
    path, learner, *label = sys.argv[1:]
    every = list(read(path, *(label or [None])))
    sparse = not label
    accuracy, seconds = run_sklearn(every, sparse) if learner == "sklearn-sgd" else run_river(learner, every, sparse)
    print(json.dumps({"rows": len(every), "accuracy": accuracy, "seconds": seconds}))
