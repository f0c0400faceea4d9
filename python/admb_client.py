"""A client of admb peers, as a scikit-learn estimator over HTTP.

This file has no dependencies. With NumPy, results are arrays, otherwise lists. It needs Python 3.9 or later.

    peer = Peer("http://127.0.0.1:7280")
    peer.partial_fit(X, y)
    peer.predict_proba(X)
"""

from __future__ import annotations

import json
import math
import re
import ssl
import struct
import sys
import time
import urllib.error
import urllib.request
from array import array
from typing import Any, Iterable, Iterator

try:
    import numpy
except ImportError:
    numpy = None

__all__ = ["Peer", "PeerError"]

#: A request is sent when it has this many bytes; peers accept 8 MiB by default.
_REQUEST_BYTES = 2**20
#: Attempts of a request that a peer rejects because it is busy.
_ATTEMPTS = 8
_PARAMETERS = ("url", "token", "ca", "timeout")


class PeerError(RuntimeError):
    """A peer has rejected a request, or does not answer."""

    def __init__(self, message: str, code: str, status: int = 0):
        super().__init__(f"{message} ({code})")
        #: Code of docs/errors.md.
        self.code = code
        #: HTTP status; 0 if there was no answer.
        self.status = status


class Peer:
    """An estimator that learns and predicts at a peer.

    The network has one predictor, which other peers and clients change at the same time. Neither `fit` nor a new
    object starts a new one.

    Parameters
    ----------
    url : address of the peer's HTTP interface
    token : a token of the peer, or None. Learning needs the role `learn`, predictions need `predict` or `learn`.
    ca : file with a certificate to trust (PEM), such as a self-signed one, or None for those of the system
    timeout : seconds until a request fails
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:7280",
        token: str | None = None,
        ca: str | None = None,
        timeout: float = 30.0,
    ):
        self.url = url
        self.token = token
        self.ca = ca
        self.timeout = timeout

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name, as scikit-learn expects them."""
        return {name: getattr(self, name) for name in _PARAMETERS}

    def set_params(self, **parameters: Any) -> Peer:
        """Changes parameters by name."""
        for name, value in parameters.items():
            if name not in _PARAMETERS:
                raise ValueError(f"{name!r} is not a parameter: use {', '.join(_PARAMETERS)}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        return f"Peer({self.url!r})"

    # Learning and predictions

    def partial_fit(
        self, X: Any, y: Iterable[Any], classes: Iterable[Any] | None = None, sample_weight: Any = None
    ) -> Peer:
        """Learns rows. A request is learned as a whole; several are sent if the rows are many.

        X : array, list of lists, sparse matrix of SciPy, DataFrame, or list of dicts by column name
        y : labels, class names or numbers
        classes : accepted for scikit-learn; must be among those of the peer
        sample_weight : weights, if the model has a column of weights
        """
        schema = self.schema()
        if classes is not None:
            unknown = set(_plain(classes)) - set(_classes(schema))
            if unknown:
                raise ValueError(f"the peer does not have the classes {sorted(map(str, unknown))}")
        rows = list(_rows(X, schema))
        members: list[dict[str, Any]] = [{"label": _label(label)} for label in _plain(y)]
        if len(members) != len(rows):
            raise ValueError(f"X has {len(rows)} rows, and y has {len(members)}")
        if sample_weight is not None:
            name = _column_of_weights(schema)
            for member, weight in zip(members, _plain(sample_weight)):
                member[name] = weight
        for _ in self._send("learn", ({**member, "features": row} for member, row in zip(members, rows))):
            pass
        return self

    def fit(self, X: Any, y: Iterable[Any], sample_weight: Any = None) -> Peer:
        """Learns the rows once, like `partial_fit`: what the network has learned before remains."""
        return self.partial_fit(X, y, sample_weight=sample_weight)

    def predict(self, X: Any) -> Any:
        """The predicted class, or number, of each row."""
        schema = self.schema()
        convert = _converter(schema)
        return _array([convert(answer["label"]) for answer in self._predictions(X, schema)])

    def predict_proba(self, X: Any) -> Any:
        """The probability of each class, in the order of `classes_`, for each row."""
        schema = self.schema()
        if not _classifies(schema):
            raise AttributeError("predict_proba needs a model of classes: this peer predicts numbers")
        return _array([answer["scores"] for answer in self._predictions(X, schema)])

    def score(self, X: Any, y: Iterable[Any], sample_weight: Any = None) -> float:
        """The accuracy of the classes, or the coefficient of determination R² of the numbers."""
        truths, guesses = _plain(y), _plain(self.predict(X))
        weights = [1.0] * len(truths) if sample_weight is None else _plain(sample_weight)
        total = math.fsum(weights)
        if _classifies(self.schema()):
            return math.fsum(w for t, g, w in zip(truths, guesses, weights) if _label(t) == g) / total
        mean = math.fsum(w * t for t, w in zip(truths, weights)) / total
        residual = math.fsum(w * (t - g) ** 2 for t, g, w in zip(truths, guesses, weights))
        return 1 - residual / math.fsum(w * (t - mean) ** 2 for t, w in zip(truths, weights))

    def _predictions(self, X: Any, schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
        answers = self._send("predict", ({"features": row} for row in _rows(X, schema)))
        for number, answer in enumerate(answers):
            if "error" in answer:
                raise ValueError(f"row {number}: {answer['error']}")
            yield answer

    # What the peer has learned

    @property
    def classes_(self) -> Any:
        """The classes. They are numbers if all their names are."""
        schema = self.schema()
        if not _classifies(schema):
            raise AttributeError("classes_ needs a model of classes: this peer predicts numbers")
        return _array(_classes(schema))

    @property
    def feature_names_in_(self) -> Any:
        """The columns of a table, in the order in which arrays have them."""
        names = _columns(self.schema())
        if not names:
            raise AttributeError("feature_names_in_ needs a model with columns")
        return _array(names)

    @property
    def n_features_in_(self) -> int:
        """Number of columns of X."""
        names = _columns(self.schema())
        return len(names) if names else len(self._linear()[0][0])

    @property
    def coef_(self) -> Any:
        """Weights of a linear model of numbers, per unit of each number: (1, features), (classes, features) or (features,)."""
        coefficients, _, is_regression = self._linear()
        return _array(coefficients[0] if is_regression else coefficients)

    @property
    def intercept_(self) -> Any:
        """The constant of each row of `coef_`."""
        _, intercepts, is_regression = self._linear()
        return intercepts[0] if is_regression else _array(intercepts)

    def weights(self) -> tuple[dict[str, Any], dict[str, str]]:
        """All tensors of the predictor by name, and the metadata of the file (docs/http.md)."""
        file = self._request("GET", "predictor")
        start = 8 + struct.unpack("<Q", file[:8])[0]
        header = json.loads(file[8:start])
        metadata = header.pop("__metadata__", {})
        return {name: _tensor(file, start, entry) for name, entry in header.items()}, metadata

    def schema(self) -> dict[str, Any]:
        """What the label and the columns mean (`GET /schema`)."""
        return json.loads(self._request("GET", "schema"))

    def status(self) -> dict[str, Any]:
        """The status of the peer (`GET /status`). It needs a token with the role `read`."""
        return json.loads(self._request("GET", "status"))

    def _linear(self) -> tuple[list[list[float]], list[float], bool]:
        """Coefficients and constants in units of the inputs, and whether a number is predicted."""
        tensors, metadata = self.weights()
        if list(tensors) != ["weights"]:
            raise AttributeError("coef_ needs a linear model: weights() returns the tensors of any model")
        weights = tensors["weights"]
        if numpy is not None:
            weights = weights.astype(float)
        is_vector = not hasattr(weights[0], "__len__")
        outputs = [_plain(weights)] if is_vector else [list(output) for output in zip(*_plain(weights))]
        first = 1 if "constant" in metadata else 0
        scaled = _scaling(metadata, first)
        features = range(first, len(outputs[0])) if scaled is None or "columns" not in metadata else list(scaled)
        target = json.loads(metadata.get("target", '{"mean": 0, "deviation": 1}'))
        coefficients, intercepts = [], []
        for output in outputs:
            constant = output[0] if first else 0.0
            row = []
            for feature in features:
                mean, deviation = (scaled or {}).get(feature, (0.0, 1.0))
                slope = output[feature] / deviation
                constant -= slope * mean
                row.append(target["deviation"] * slope)
            coefficients.append(row)
            intercepts.append(target["mean"] + target["deviation"] * constant)
        return coefficients, intercepts, "classes" not in metadata

    # scikit-learn

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, RegressorTags, Tags, TargetTags

        classifies = _classifies(self.schema())
        return Tags(
            estimator_type="classifier" if classifies else "regressor",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags() if classifies else None,
            regressor_tags=None if classifies else RegressorTags(),
        )

    # HTTP

    def _send(self, route: str, inputs: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Sends inputs as JSON lines, in as many requests as needed. Yields the answer for each input."""
        lines: list[bytes] = []
        size = 0
        for line in (json.dumps(one, allow_nan=False).encode() + b"\n" for one in inputs):
            if lines and size + len(line) > _REQUEST_BYTES:
                yield from self._answers(route, lines)
                lines, size = [], 0
            lines.append(line)
            size += len(line)
        if lines:
            yield from self._answers(route, lines)

    def _answers(self, route: str, lines: list[bytes]) -> list[dict[str, Any]]:
        return json.loads(self._request("POST", route, b"".join(lines)))["predictions"]

    def _request(self, method: str, route: str, body: bytes | None = None) -> bytes:
        url = f"{self.url.rstrip('/')}/{route}"
        request = urllib.request.Request(url, data=body, method=method)
        if body is not None:
            request.add_header("content-type", "application/x-ndjson")
        if self.token is not None:
            request.add_header("authorization", f"Bearer {self.token.strip()}")
        context = ssl.create_default_context(cafile=self.ca) if url.startswith("https:") else None
        for attempt in range(_ATTEMPTS):
            try:
                with urllib.request.urlopen(request, timeout=self.timeout, context=context) as answer:
                    return answer.read()
            except urllib.error.HTTPError as error:
                refusal = _refusal(error)
                # Nothing was learned yet.
                if refusal.code not in ("ERR_RATE_LIMIT", "ERR_UNAVAILABLE") or attempt + 1 == _ATTEMPTS:
                    raise refusal from None
                time.sleep(float(error.headers.get("retry-after") or 0.1 * 2**attempt))
            except (OSError, urllib.error.URLError) as error:
                reason = getattr(error, "reason", error)
                raise PeerError(f"no peer answers at {url}: {reason}", "ERR_NO_PEER") from None
        raise AssertionError("unreachable")


def _refusal(error: urllib.error.HTTPError) -> PeerError:
    try:
        answer = json.loads(error.read())
        message = ": ".join(part for part in (answer["error"], answer.get("remedy")) if part)
        return PeerError(message, answer["code"], error.code)
    except (ValueError, KeyError, TypeError):
        return PeerError(f"the answer {error.code} is not a peer's", "ERR_NO_PEER", error.code)


def _plain(values: Any) -> list[Any]:
    """Lists and numbers of Python, from arrays, series and iterables."""
    return values.tolist() if hasattr(values, "tolist") else list(values)


def _array(values: list[Any]) -> Any:
    return values if numpy is None else numpy.asarray(values)


def _tensor(file: bytes, start: int, entry: dict[str, Any]) -> Any:
    """A tensor of a safetensors file: an array, or without NumPy nested lists."""
    begin, end = entry["data_offsets"]
    content, shape = file[start + begin : start + end], entry["shape"]
    if entry["dtype"] != "F32":
        raise ValueError(f"tensors of type {entry['dtype']} are not supported")
    if numpy is not None:
        return numpy.frombuffer(content, "<f4").reshape(shape)
    flat: Any = array("f", content)
    if sys.byteorder == "big":
        flat.byteswap()
    flat = flat.tolist()
    for length in reversed(shape[1:]):
        flat = [flat[i : i + length] for i in range(0, len(flat), length)]
    return flat


def _classifies(schema: dict[str, Any]) -> bool:
    return schema["label"]["kind"] == "class"


def _classes(schema: dict[str, Any]) -> list[Any]:
    label = schema["label"]
    names = label.get("names")
    if names is None:
        return list(range(label["classes"]))
    convert = _converter(schema)
    return [convert(name) for name in [*names, *label.get("added", [])]]


def _converter(schema: dict[str, Any]) -> Any:
    """Class names to labels: whole numbers if all names are."""
    label = schema["label"]
    names = [*label.get("names", []), *label.get("added", [])]
    is_numeric = all(re.fullmatch(r"[+-]?\d+", name) for name in names)
    return (lambda name: int(name)) if _classifies(schema) and is_numeric else (lambda name: name)


def _label(value: Any) -> Any:
    """Class numbers are often floats in arrays."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _columns(schema: dict[str, Any]) -> list[str]:
    """The columns of inputs. Derived columns are computed by the peer."""
    derived = ("ignored", "interaction", "lag")
    return [c["name"] for c in schema.get("columns", []) if c["kind"] not in derived and "role" not in c]


def _column_of_weights(schema: dict[str, Any]) -> str:
    for column in schema.get("columns", []):
        if column.get("role") == "weight":
            return column["name"]
    raise ValueError("sample_weight needs a model with a column of weights: start the peers with --weight COLUMN")


def _rows(X: Any, schema: dict[str, Any]) -> Iterator[Any]:
    """The value of `features` for each row."""
    if hasattr(X, "to_dict") and hasattr(X, "columns"):
        for row in X.to_dict("records"):
            yield {str(name): _value(value) for name, value in row.items()}
        return
    if hasattr(X, "tocsr"):
        matrix = X.tocsr()
        for start, end in zip(matrix.indptr[:-1].tolist(), matrix.indptr[1:].tolist()):
            yield dict(zip(map(str, matrix.indices[start:end].tolist()), matrix.data[start:end].tolist()))
        return
    names = _columns(schema)
    for number, row in enumerate(_plain(X)):
        if isinstance(row, dict):
            yield {str(name): _value(value) for name, value in row.items()}
            continue
        values = [_value(value) for value in _plain(row)]
        if names:
            if len(values) != len(names):
                expected = f"{len(names)} columns: {', '.join(names)}"
                raise ValueError(f"row {number} has {len(values)} values, and the model has {expected}")
            yield dict(zip(names, values))
        elif None in values:
            raise ValueError(f"row {number} has a missing value, and the model has no columns: replace it by a number")
        else:
            yield values


def _value(value: Any) -> Any:
    """A value of JSON; None for a missing one."""
    if hasattr(value, "item"):
        value = value.item()
    if hasattr(value, "isoformat"):
        return value.isoformat() if value == value else None
    return None if isinstance(value, float) and math.isnan(value) else value


def _scaling(metadata: dict[str, str], first: int) -> dict[int, tuple[float, float]] | None:
    """Mean and deviation of the scaled features; all features of a table of numbers, in the order of its columns."""
    if "columns" in metadata:
        columns = json.loads(metadata["columns"])
        if "hashed" in metadata or any(c["kind"] not in ("number", "lag") for c in columns):
            raise AttributeError("coef_ needs columns that are numbers: weights() returns the weights of any column")
        return {c["feature"]: (c.get("mean", 0.0), c.get("deviation", 1.0)) for c in columns}
    if "scaling" not in metadata:
        return None
    moments = json.loads(metadata["scaling"])
    deviations = ((feature, mean, math.sqrt(squares / count)) for feature, count, mean, squares in moments)
    return {feature: (mean, deviation or math.inf) for feature, mean, deviation in deviations}
