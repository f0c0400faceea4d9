"""A client of admb peers, as a scikit-learn estimator over HTTP.

This file has no dependencies. With NumPy, results are arrays, otherwise lists. It needs Python 3.9 or later.

    peer = Peer("http://127.0.0.1:7280")
    peer.partial_fit(X, y)
    peer.predict_proba(X)
"""

from __future__ import annotations

import ipaddress
import json
import math
import re
import ssl
import struct
import sys
import time
import urllib.error
import urllib.parse
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
        #: Code of docs/reference/errors.md.
        self.code = code
        #: HTTP status; 0 if there was no answer.
        self.status = status


class PeerInputError(PeerError, ValueError):
    """A peer has rejected inputs that do not fit the model."""


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
        name_of = _namer(schema)
        if classes is not None:
            known = _names(schema)
            unknown = [one for one in _labels(classes) if name_of(one) not in known]
            if unknown:
                raise ValueError(f"the peer does not have the classes {sorted(map(str, unknown))}")
        labels = _labels(y)
        rows = list(_rows(X, schema))
        _require_length("y", labels, rows)
        members: list[dict[str, Any]] = [{"label": name_of(label)} for label in labels]
        if sample_weight is not None:
            name = _column_of_weights(schema)
            weights = _weights(sample_weight, rows)
            members = [{**member, name: weight} for member, weight in zip(members, weights)]
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
        schema = self.schema()
        truths = _labels(y)
        guesses = [answer["label"] for answer in self._predictions(X, schema)]
        _require_length("y", truths, guesses)
        if not truths:
            raise ValueError("X has no rows: a score needs some")
        weights = [1.0] * len(truths) if sample_weight is None else _weights(sample_weight, guesses)
        total = math.fsum(weights)
        if total == 0:
            raise ValueError("the weights of all rows are 0")
        if _classifies(schema):
            name_of, known = _namer(schema), _names(schema)
            names = [name_of(label) for label in truths]
            if not any(name in known for name in names):
                raise ValueError(f"y has none of the classes of the peer ({', '.join(map(str, known))}), but {truths[0]!r}")
            return math.fsum(w for t, g, w in zip(names, guesses, weights) if t == g) / total
        numbers = [_number(label) for label in truths]
        mean = math.fsum(w * t for t, w in zip(numbers, weights)) / total
        residual = math.fsum(w * (t - g) ** 2 for t, g, w in zip(numbers, guesses, weights))
        spread = math.fsum(w * (t - mean) ** 2 for t, w in zip(numbers, weights))
        # As scikit-learn does if all numbers are equal.
        return 1 - residual / spread if spread > 0 else float(residual == 0)

    def _predictions(self, X: Any, schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
        answers = self._send("predict", ({"features": row} for row in _rows(X, schema)))
        for number, answer in enumerate(answers):
            if "error" in answer:
                raise ValueError(f"row {number}: {answer['error']}")
            yield answer

    # One row at a time, as in River. A request takes about a millisecond: many rows at once are faster.

    def learn_one(self, x: dict[str, Any], y: Any) -> Peer:
        """Learns a row: a dict by column name, or by feature number of a model without columns."""
        return self.partial_fit([x], [y])

    def learn_many(self, X: Any, y: Iterable[Any]) -> Peer:
        """Learns rows, like `partial_fit`."""
        return self.partial_fit(X, y)

    def predict_one(self, x: dict[str, Any]) -> Any:
        """The predicted class, or number, of a row."""
        return _plain(self.predict([x]))[0]

    def predict_many(self, X: Any) -> Any:
        """The same for rows, like `predict`."""
        return self.predict(X)

    def predict_proba_one(self, x: dict[str, Any]) -> dict[Any, float]:
        """The probability of each class, by class."""
        return dict(zip(_plain(self.classes_), _plain(self.predict_proba([x]))[0]))

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
        """All tensors of the predictor by name, and the metadata of the file (docs/reference/http.md)."""
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
        from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags

        schema = self.schema()
        classifies = _classifies(schema)
        return Tags(
            estimator_type="classifier" if classifies else "regressor",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags() if classifies else None,
            regressor_tags=None if classifies else RegressorTags(),
            input_tags=InputTags(sparse=True, allow_nan=bool(_columns(schema))),
            # Others teach the network as well, and it predicts before this client has taught it anything.
            non_deterministic=True,
            requires_fit=False,
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
        handlers: list[Any] = [] if context is None else [urllib.request.HTTPSHandler(context=context)]
        if _is_loopback(url):
            # A proxy cannot reach this machine's own addresses.
            handlers.append(urllib.request.ProxyHandler({}))
        opener = urllib.request.build_opener(*handlers)
        for attempt in range(_ATTEMPTS):
            try:
                with opener.open(request, timeout=self.timeout) as answer:
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
        kind = PeerInputError if answer["code"] == "ERR_REQUEST" else PeerError
        return kind(message, answer["code"], error.code)
    except (ValueError, KeyError, TypeError):
        return PeerError(f"the answer {error.code} is not a peer's", "ERR_NO_PEER", error.code)


def _is_loopback(url: str) -> bool:
    host = urllib.parse.urlsplit(url).hostname or ""
    try:
        return host == "localhost" or host.endswith(".localhost") or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _labels(y: Any) -> list[Any]:
    """Labels of any kind and shape: a sequence, an array of shape (n,) or (n, 1), a series, or a frame of one column."""
    if hasattr(y, "columns") and hasattr(y, "iloc"):
        if len(y.columns) != 1:
            raise ValueError(f"y has {len(y.columns)} columns: give one")
        y = y.iloc[:, 0]
    if y is None:
        raise ValueError("learning requires y to be passed, but the target y is None")
    labels = []
    for row, value in enumerate(_plain(y)):
        if isinstance(value, (list, tuple)) or (hasattr(value, "shape") and value.shape != ()):
            inner = _plain(value)
            if len(inner) != 1:
                raise ValueError(f"row {row} of y has {len(inner)} labels: give one")
            value = inner[0]
        value = _value(value)
        if value is None:
            raise ValueError(f"row {row} of y has no label: remove the row")
        labels.append(value)
    return labels


def _require_length(what: str, values: list[Any], rows: list[Any]) -> None:
    if len(values) != len(rows):
        raise ValueError(f"X has {len(rows)} rows, and {what} has {len(values)}")


def _weights(sample_weight: Any, rows: list[Any]) -> list[float]:
    weights = [_number(weight) for weight in _labels(sample_weight)]
    _require_length("sample_weight", weights, rows)
    negative = next((weight for weight in weights if not 0 <= weight < math.inf), None)
    if negative is not None:
        raise ValueError(f"sample_weight has {negative}: weights are numbers of at least 0")
    return weights


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{value!r} is not a number") from None


def _plain(values: Any) -> list[Any]:
    """Lists and numbers of Python, from arrays, series and iterables."""
    if hasattr(values, "__array__") and not hasattr(values, "tolist") and numpy is not None:
        values = numpy.asarray(values)
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


def _names(schema: dict[str, Any]) -> list[Any]:
    """The classes as the peer calls them: texts, or numbers if they have no names."""
    label = schema["label"]
    names = label.get("names")
    return list(range(label.get("classes", 0))) if names is None else [*names, *label.get("added", [])]


def _classes(schema: dict[str, Any]) -> list[Any]:
    convert = _converter(schema)
    return [convert(name) for name in _names(schema)]


def _converter(schema: dict[str, Any]) -> Any:
    """Class names to labels: whole numbers if all names are, as Python writes them. `007` keeps its zeros."""
    names = _names(schema) if _classifies(schema) else []
    is_numeric = bool(names) and all(re.fullmatch(r"0|-?[1-9]\d*", str(name)) for name in names)
    return int if is_numeric else (lambda name: name)


def _namer(schema: dict[str, Any]) -> Any:
    """Labels of any kind to the names of the peer's classes, or to numbers. Unknown labels are kept."""
    if not _classifies(schema):
        return _number
    names = _names(schema)
    known = set(names)
    by_text = {str(name): name for name in names}
    by_number = {}
    for name in reversed(names):
        try:
            by_number[float(name)] = name
        except ValueError:
            pass

    def name_of(label: Any) -> Any:
        if isinstance(label, bool):
            texts = ("True", "true", "TRUE", "1") if label else ("False", "false", "FALSE", "0")
            return next((by_text[text] for text in texts if text in by_text), label)
        if label in known:
            return label
        if str(label) in by_text:
            return by_text[str(label)]
        if isinstance(label, (int, float)):
            number = int(label) if label == label // 1 else label
            return by_number.get(label, number)
        try:
            return by_number.get(float(label), label) if str(label).isascii() else label
        except ValueError:
            return label

    return name_of


def _columns(schema: dict[str, Any]) -> list[str]:
    """The columns of inputs. Derived columns are computed by the peer."""
    derived = ("ignored", "interaction")
    return [c["name"] for c in schema.get("columns", []) if c["kind"] not in derived and "role" not in c]


def _column_of_weights(schema: dict[str, Any]) -> str:
    for column in schema.get("columns", []):
        if column.get("role") == "weight":
            return column["name"]
    raise ValueError("sample_weight needs a model with a column of weights: start the peers with --weight COLUMN")


def _rows(X: Any, schema: dict[str, Any]) -> Iterator[Any]:
    """The value of `features` for each row."""
    names = _columns(schema)
    # Names are hashed, or the names of columns.
    is_named = bool(names) or "hashBits" in schema
    if hasattr(X, "to_dict") and hasattr(X, "columns"):
        columns = [str(name) for name in X.columns]
        if len(set(columns)) < len(columns):
            raise ValueError("X has two columns of one name: rename one")
        for number, row in enumerate(X.itertuples(index=False, name=None)):
            values = [_value(value, number) for value in row]
            yield dict(zip(columns, values)) if is_named else _numbers(values, number)
        return
    if hasattr(X, "tocsr"):
        matrix = X.tocsr(copy=True)
        matrix.sum_duplicates()
        if names and matrix.shape[1] != len(names):
            expected = f"{len(names)} columns: {', '.join(names)}"
            raise ValueError(f"X has {matrix.shape[1]} columns, and the model has {expected}")
        for number, (start, end) in enumerate(zip(matrix.indptr[:-1].tolist(), matrix.indptr[1:].tolist())):
            values = [_value(value, number) for value in matrix.data[start:end].tolist()]
            indices = matrix.indices[start:end].tolist()
            if names:
                # What a sparse matrix omits is 0, and what a row omits is missing.
                yield {**dict.fromkeys(names, 0), **{names[index]: value for index, value in zip(indices, values)}}
            else:
                yield dict(zip(map(str, indices), _numbers(values, number)))
        return
    if getattr(getattr(X, "dtype", None), "kind", "") == "M":
        X = X.astype(str)
    for number, row in enumerate(_plain(X)):
        if isinstance(row, dict):
            yield {str(name): _value(value, number) for name, value in row.items()}
            continue
        if not hasattr(row, "__iter__") or isinstance(row, (str, bytes)):
            raise ValueError(f"row {number} is {row!r}: give X two dimensions. Reshape your data, such as X.reshape(-1, 1) of one column")
        values = [_value(value, number) for value in _plain(row)]
        if names:
            if len(values) != len(names):
                expected = f"{len(names)} columns: {', '.join(names)}"
                raise ValueError(f"row {number} has {len(values)} values, and the model has {expected}")
            yield dict(zip(names, values))
        else:
            yield _numbers(values, number)


def _numbers(values: list[Any], number: int) -> list[Any]:
    if None in values:
        raise ValueError(f"row {number} has a missing value (NaN), and the model has no columns: replace it by a number")
    return values


def _value(value: Any, number: int | None = None) -> Any:
    """A value of JSON; None for a missing one. `number` is that of the row, for messages."""
    if hasattr(value, "item") and not isinstance(value, (list, dict)):
        value = str(value) if getattr(getattr(value, "dtype", None), "kind", "") == "M" else value.item()
    if type(value).__name__ in ("NAType", "NaTType") or value == "NaT":
        return None
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if type(value).__name__ == "Decimal":
        value = float(value)
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            return None
        raise ValueError(f"{'y' if number is None else f'row {number}'} has an infinite value (inf): replace it")
    if isinstance(value, complex):
        raise ValueError("Complex data not supported: give numbers")
    return value


def _scaling(metadata: dict[str, str], first: int) -> dict[int, tuple[float, float]] | None:
    """Mean and deviation of the scaled features; all features of a table of numbers, in the order of its columns."""
    if "columns" in metadata:
        columns = json.loads(metadata["columns"])
        if "hashed" in metadata or any(c["kind"] != "number" for c in columns):
            raise AttributeError("coef_ needs columns that are numbers: weights() returns the weights of any column")
        return {c["feature"]: (c.get("mean", 0.0), c.get("deviation", 1.0)) for c in columns}
    if "scaling" not in metadata:
        return None
    moments = json.loads(metadata["scaling"])
    # As docs/reference/http.md: the standard deviation, and more after only a few values.
    deviations = ((f, mean, math.sqrt(squares / n) * (1 + 4 / n)) for f, n, mean, squares in moments)
    return {feature: (mean, deviation or math.inf) for feature, mean, deviation in deviations}
