"""Every zoo model, exported, gives the same results in onnxruntime as here: onnxruntime_test.py ONNX_REFERENCE"""

import json
import pathlib
import subprocess
import sys
import tempfile

if not pathlib.Path(sys.prefix, "stamp").exists():
    print("skipped: the virtual environment could not be filled (prepare_venv.py says why)")
    sys.exit(77)

import numpy
import onnx
import onnxruntime

TOLERANCE = 1e-4  # relative to the largest absolute value


def difference(actual, expected):
    return float(numpy.abs(actual - expected).max() / numpy.abs(expected).max())


def softmax(scores):
    powers = numpy.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def check(variant, path):
    """Returns the largest relative difference; raises for any other fault."""
    onnx.checker.check_model(str(path) + ".onnx", full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path) + ".onnx", options)
    count = variant["images"]
    images = numpy.fromfile(str(path) + ".images", numpy.float32).reshape([count] + variant["image"])
    expected = numpy.fromfile(str(path) + ".expected", numpy.float32)
    assert [i.name for i in session.get_inputs()] == ["images"]
    assert numpy.abs(expected).max() > 1e-3, "scores that say nothing"
    names = [output.name for output in session.get_outputs()]
    outputs = session.run(None, {"images": images})
    expected = expected.reshape(outputs[0].shape)
    worst = difference(outputs[0], expected)
    if len(outputs) == 2:
        assert names == ["scores", "probabilities"], names
        worst = max(worst, difference(outputs[1], softmax(expected)))
    else:
        assert names == ["output"], names
    if variant["batch"] == 0:  # any batch: another size gives the same rows
        one = session.run(None, {"images": images[1:2]})[0]
        worst = max(worst, difference(one, expected[1:2]))
    return worst


def main():
    program = sys.argv[1]
    models = subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()
    failed = 0
    for model in sys.argv[2:] or models:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([program, folder, model], check=True)
            for i, variant in enumerate(json.loads(pathlib.Path(folder, "variants.json").read_text())):
                worst = check(variant, pathlib.Path(folder, str(i)))
                batch = variant["batch"] or "any"
                print(f"{variant['name']}, batch {batch}: relative difference {worst:.1e}", flush=True)
                failed += not worst < TOLERANCE
    sys.exit(f"{failed} beyond {TOLERANCE}" if failed else 0)


main()
