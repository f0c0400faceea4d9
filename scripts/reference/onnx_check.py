"""
Checks exported ONNX files with the ONNX checker, and their outputs in onnxruntime against those of admb, to 1e-5.

    python3 -m venv venv && venv/bin/pip install onnx onnxruntime
    venv/bin/python scripts/reference/onnx_check.py CASES.json

CASES.json is a list of {name, file, inputs, outputs}; inputs and outputs are {shape, data} by name, and missing numbers
of inputs are null. test/integration/cli/onnx.test.ts writes such a file for every model.
"""

import json
import sys

import numpy as np
import onnx
import onnxruntime

TYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64}


def difference(case):
    onnx.checker.check_model(onnx.load(case["file"]), full_check=True)
    session = onnxruntime.InferenceSession(case["file"])
    feed = {
        given.name: np.array(case["inputs"][given.name]["data"], dtype=np.float64)
        .astype(TYPES[given.type])
        .reshape(case["inputs"][given.name]["shape"])
        for given in session.get_inputs()
    }
    found = dict(zip([one.name for one in session.get_outputs()], session.run(None, feed)))
    largest = 0.0
    for name, expected in case["outputs"].items():
        if list(found[name].shape) != expected["shape"]:
            raise SystemExit(f"{case['name']}: {name} has the shape {found[name].shape}, not {expected['shape']}")
        if found[name].dtype == object:
            if found[name].tolist() != expected["data"]:
                raise SystemExit(f"{case['name']}: {name} differs: {found[name].tolist()} {expected['data']}")
            continue
        numbers = np.array(expected["data"]).reshape(expected["shape"])
        largest = max(largest, float(np.max(np.abs(found[name] - numbers) / np.maximum(1, np.abs(numbers)))))
    return largest


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        cases = json.load(file)
    worst = {case["name"]: difference(case) for case in cases}
    for name, largest in worst.items():
        print(f"{name}: largest difference {largest:.1e}")
    if any(not largest <= 1e-5 for largest in worst.values()):
        raise SystemExit("the outputs differ by more than 1e-5")


if __name__ == "__main__":
    main()
