"""Reads the written event files with the real TensorBoard: tensorboard_test.py WRITE_EVENTS LOCKSTEP

Its loader must give every tag and value, its server must answer for every tab; `lockstep tensorboard` starts the server.
"""

import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse
import urllib.request

if not pathlib.Path(sys.prefix, "stamp").exists():
    print("skipped: the virtual environment could not be filled (prepare_venv.py says why)")
    sys.exit(77)

import numpy
from google.protobuf import text_format
from tensorboard.backend.event_processing import event_accumulator, event_file_loader
from tensorboard.compat.proto import event_pb2, graph_pb2
from tensorboard.plugins.hparams import plugin_data_pb2
from tensorboard.util import tensor_util

PATIENCE = 100
WRITE_EVENTS, LOCKSTEP = sys.argv[1:3]


def without_proxy():
    return {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}


class Server:
    """`lockstep tensorboard FOLDER` on a free port of this machine."""

    def __init__(self, folder):
        environment = without_proxy() | {"PATH": f"{sys.prefix}/bin:{os.environ['PATH']}"}
        self.log = open(folder / "server.log", "w+")
        self.process = subprocess.Popen([LOCKSTEP, "tensorboard", folder / "runs", "--port", "0"], env=environment,
                                        stdout=self.log, stderr=subprocess.STDOUT)
        self.address = self.wait_for_address()
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def wait_for_address(self):
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            text = pathlib.Path(self.log.name).read_text()
            if found := re.search(r"http://\S+?:\d+/", text):
                return found[0]
            assert self.process.poll() is None, text
            time.sleep(0.1)
        raise AssertionError(f"no address in {text!r}")

    def get(self, path, body=None, **query):
        url = self.address + path + ("?" + urllib.parse.urlencode(query) if query else "")
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"} if data else {})
        with self.opener.open(request, timeout=PATIENCE) as answer:
            return answer.read()

    def json(self, path, body=None, **query):
        return json.loads(self.get(path, body, **query))

    def wait_until(self, ready, path, body=None, **query):
        """The server reads files in the background: asks until it has them."""
        deadline = time.monotonic() + PATIENCE
        while not ready(answer := self.json(path, body, **query)):
            assert time.monotonic() < deadline, answer
            time.sleep(0.2)
        return answer

    def points(self, count, path, **query):
        """Returns the points of a tag, which is known before all of its points are."""
        return self.wait_until(lambda answer: len(answer) >= count, path, **query)

    def close(self):
        self.process.terminate()
        self.process.wait(timeout=PATIENCE)
        self.log.close()


class TensorBoardTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        cls.folder = pathlib.Path(cls.stack.enter_context(tempfile.TemporaryDirectory()))
        subprocess.run([WRITE_EVENTS, cls.folder / "runs"], check=True)
        cls.expected = json.loads((cls.folder / "runs/expected.json").read_text())
        cls.server = Server(cls.folder)
        cls.stack.callback(cls.server.close)

    @classmethod
    def tearDownClass(cls):
        cls.stack.close()

    def load(self, run):
        accumulator = event_accumulator.EventAccumulator(str(self.folder / "runs" / run), size_guidance={
            kind: 0 for kind in event_accumulator.DEFAULT_SIZE_GUIDANCE})
        return accumulator.Reload()

    def check_graph(self, graph):
        nodes = {node.name: node for node in graph.node}
        expected = self.expected["lenet-1"]["graph"]
        self.assertEqual(len(graph.node), expected["nodes"])
        self.assertEqual(len(nodes), expected["nodes"], "names are unique")
        for node in graph.node:
            for name in node.input:
                self.assertIn(name.split(":")[0], nodes)
        for name, shape in expected["parameters"].items():
            seen = nodes[name].attr["_output_shapes"].list.shape[0]
            self.assertEqual([dim.size for dim in seen.dim], shape)
        self.assertEqual({node.device for node in graph.node},
                         {"/job:ps/task:0", "/job:ps/task:1", "/job:worker/task:0/device:CPU:0"})
        backward = [name for name in nodes if name.startswith("gradients/")]
        self.assertTrue(any(name.startswith("gradients/conv1/") for name in backward))
        self.assertLess(len(backward), len(nodes))

    def check_histogram(self, buckets, values):
        """Returns rows of left, right, count."""
        buckets = numpy.array(buckets)
        values = numpy.array(values, numpy.float32)
        self.assertAlmostEqual(buckets[:, 2].sum(), len(values), places=3)
        self.assertAlmostEqual(buckets[0, 0], values.min(), places=6)
        self.assertAlmostEqual(buckets[-1, 1], values.max(), places=6)

    def test_the_loader_gives_every_scalar(self):
        for run, expected in self.expected.items():
            accumulator = self.load(run)
            self.assertEqual(set(accumulator.Tags()["scalars"]), set(expected["scalars"]))
            for tag, points in expected["scalars"].items():
                self.assertEqual([[e.step, e.value] for e in accumulator.Scalars(tag)], points, f"{run} {tag}")

    def test_the_loader_gives_histograms_images_and_the_graph(self):
        expected = self.expected["lenet-1"]
        accumulator = self.load("lenet-1")
        self.assertEqual(set(accumulator.Tags()["histograms"]), set(expected["histograms"]))
        for tag, points in expected["histograms"].items():
            for event, (step, values) in zip(accumulator.Histograms(tag), points, strict=True):
                seen = event.histogram_value
                self.assertEqual(event.step, step)
                self.assertEqual((seen.num, sum(seen.bucket)), (len(values), len(values)))
                self.assertAlmostEqual(seen.sum, sum(values), places=4)
                below = 0
                for limit, count in zip(seen.bucket_limit, seen.bucket, strict=True):
                    below += count
                    self.assertAlmostEqual(below, sum(value < limit for value in values), delta=1)
        self.assertEqual(set(accumulator.Tags()["images"]), set(expected["images"]))
        for tag, image in expected["images"].items():
            [event] = accumulator.Images(tag)
            self.assertEqual((event.step, event.height, event.width, list(event.encoded_image_string)),
                             (image["step"], image["height"], image["width"], image["png"]))
        self.check_graph(accumulator.Graph())

    def test_the_loader_gives_every_event_of_every_file(self):
        statuses, plugins = [], {}
        for path in sorted((self.folder / "runs/lenet-1").glob("events.*")):
            events = list(event_file_loader.EventFileLoader(str(path)).Load())
            self.assertEqual(events[0].file_version, "brain.Event:2")
            for event in events:
                if event.HasField("session_log"):
                    statuses.append((event.session_log.status, event.step, event.session_log.checkpoint_path))
                for value in event.summary.value:
                    plugins.setdefault(value.metadata.plugin_data.plugin_name, []).append(value)
        log = event_pb2.SessionLog
        self.assertEqual([status[:2] for status in statuses], [(log.START, 1), (log.CHECKPOINT, 20), (log.START, 21)])
        self.assertTrue(statuses[1][2].endswith("/lenet-1/checkpoints/step-20.ckpt"))
        [text] = plugins["text"]
        self.assertEqual(tensor_util.make_ndarray(text.tensor).item(),
                         b"| setting | value |\n|---|---|\n| lr | **0.001** |\n")
        end = plugin_data_pb2.HParamsPluginData.FromString(plugins["hparams"][-1].metadata.plugin_data.content)
        self.assertEqual(end.session_end_info.status, 1)

    def test_the_server_answers_for_scalars(self):
        tags = self.server.wait_until(lambda tags: set(tags) >= set(self.expected) and all(
            set(tags[run]) == set(self.expected[run]["scalars"]) for run in self.expected),
            "data/plugin/scalars/tags")
        self.assertEqual(set(tags), set(self.expected))
        for run, expected in self.expected.items():
            for tag, points in expected["scalars"].items():
                answer = self.server.points(len(points), "data/plugin/scalars/scalars", run=run, tag=tag)
                self.assertEqual([[step, numpy.float32(value)] for _, step, value in answer],
                                 [[step, numpy.float32(value)] for step, value in points], f"{run} {tag}")

    def test_the_server_answers_for_histograms(self):
        expected = self.expected["lenet-1"]["histograms"]
        tags = self.server.wait_until(lambda tags: len(tags.get("lenet-1", {})) == len(expected),
                                      "data/plugin/histograms/tags")
        self.assertEqual(set(tags["lenet-1"]), set(expected))
        for tag, points in expected.items():
            answer = self.server.points(len(points), "data/plugin/histograms/histograms", run="lenet-1", tag=tag)
            self.assertEqual([step for _, step, _ in answer], [step for step, _ in points])
            for (_, _, buckets), (_, values) in zip(answer, points):
                self.check_histogram(buckets, values)

    def test_the_server_answers_for_images(self):
        expected = self.expected["lenet-1"]["images"]
        tags = self.server.wait_until(lambda tags: len(tags.get("lenet-1", {})) == len(expected),
                                      "data/plugin/images/tags")
        self.assertEqual(set(tags["lenet-1"]), set(expected))
        for tag, image in expected.items():
            [entry] = self.server.json("data/plugin/images/images", run="lenet-1", tag=tag, sample=0)
            self.assertEqual(entry["step"], image["step"])
            png = self.server.get("data/plugin/images/individualImage?" + entry["query"])
            self.assertEqual(list(png), image["png"])

    def test_the_server_answers_for_the_graph_and_texts(self):
        self.server.wait_until(lambda info: info.get("lenet-1", {}).get("run_graph"), "data/plugin/graphs/info")
        graph = self.server.get("data/plugin/graphs/graph", run="lenet-1", conceptual="false")
        self.check_graph(text_format.Parse(graph, graph_pb2.GraphDef()))
        self.server.wait_until(lambda tags: "config" in tags.get("lenet-1", []), "data/plugin/text/tags")
        [text] = self.server.json("data/plugin/text/text", run="lenet-1", tag="config")
        self.assertIn("<strong>0.001</strong>", text["text"])

    def test_the_hparams_tab_compares_runs(self):
        ask = {"experimentName": "", "allowedStatuses": [f"STATUS_{s}" for s in ("UNKNOWN", "SUCCESS", "FAILURE", "RUNNING")],
               "colParams": [{"metric": {"tag": "eval/accuracy", "group": ""}, "includeInResult": True},
                             {"hparam": "lr", "includeInResult": True},
                             {"hparam": "exact-conv", "includeInResult": True},
                             {"hparam": "model", "includeInResult": True}],
               "startIndex": 0, "sliceSize": 100}
        deadline = time.monotonic() + PATIENCE
        while True:
            groups = self.server.json("data/plugin/hparams/session_groups", ask).get("sessionGroups", [])
            sessions = {group["name"]: group for group in groups}
            if len(sessions) == 2 and all(s["sessions"][0]["status"] != "STATUS_UNKNOWN" for s in groups):
                break
            self.assertLess(time.monotonic(), deadline, groups)
            time.sleep(0.2)
        experiment = self.server.json("data/plugin/hparams/experiment", {"experimentName": ""})
        self.assertEqual({info["name"]: info["type"] for info in experiment["hparamInfos"]},
                         {"lr": "DATA_TYPE_FLOAT64", "batch": "DATA_TYPE_FLOAT64", "model": "DATA_TYPE_STRING",
                          "exact-conv": "DATA_TYPE_BOOL"})
        self.assertEqual([info["name"]["tag"] for info in experiment["metricInfos"]], ["eval/accuracy", "train/loss"])
        self.assertEqual({name: (group["hparams"]["lr"], group["hparams"]["exact-conv"], group["hparams"]["model"])
                          for name, group in sessions.items()},
                         {"lenet-1": (0.001, False, "lenet"), "lenet-2": (0.01, True, "lenet")})
        self.assertEqual({name: group["sessions"][0]["status"] for name, group in sessions.items()},
                         {"lenet-1": "STATUS_SUCCESS", "lenet-2": "STATUS_FAILURE"})
        for name, group in sessions.items():
            step, value = self.expected[name]["scalars"]["eval/accuracy"][-1]
            [metric] = [metric for metric in group["metricValues"] if metric["name"]["tag"] == "eval/accuracy"]
            self.assertEqual(metric["trainingStep"], step)
            self.assertAlmostEqual(metric["value"], value, places=5)


class RealRunsTest(unittest.TestCase):
    """Event files of trainings in the real server: one process, a cluster and an autoencoder."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.runs = pathlib.Path(cls.folder.name) / "runs"
        quick = ["--dataset", "synthetic", "--train-limit", "1000", "--test-limit", "200", "--epochs", "2", "--batch", "50",
                 "--summary-every", "10", "--quiet"]
        for words in (["lenet", "--name", "alone", "--lr", "0.002"],
                      ["lenet", "--name", "cluster", "--workers", "2", "--ps", "1", "--evaluator"],
                      ["autoencoder", "--name", "coder"]):
            subprocess.run([LOCKSTEP, "train", *words, *quick, "--runs-dir", cls.runs], check=True,
                           stdout=subprocess.DEVNULL)
        cls.server = Server(pathlib.Path(cls.folder.name))

    @classmethod
    def tearDownClass(cls):
        cls.server.close()
        cls.folder.cleanup()

    def scalars(self):
        tags = {"alone-1": "eval/accuracy", "coder-1": "eval/loss", "cluster-1": "train/staleness",
                "cluster-1/worker-1": "train/wait_share", "cluster-1/ps-0": "monitor/wire_sent",
                "cluster-1/evaluator-0": "eval/accuracy"}
        return tags, self.server.wait_until(lambda answer: all(tag in answer.get(run, {}) for run, tag in tags.items()),
                                            "data/plugin/scalars/tags")

    def test_every_role_is_a_run_with_its_scalars(self):
        tags, found = self.scalars()
        self.assertEqual(set(found), set(tags))
        loss = self.server.points(5, "data/plugin/scalars/scalars", run="alone-1", tag="train/loss")
        rows = (self.runs / "alone-1/steps.csv").read_text().splitlines()[1:]
        self.assertEqual([point[1] for point in loss], [1, 10, 20, 30, 40])
        self.assertAlmostEqual(loss[0][2], float(rows[0].split(",")[3]), places=5)
        evals = (self.runs / "alone-1/evals.csv").read_text().splitlines()[1:]
        last = evals[-1].split(",")
        accuracy = self.server.points(len(evals), "data/plugin/scalars/scalars", run="alone-1", tag="eval/accuracy")
        self.assertEqual(accuracy[-1][1], int(last[0]))
        self.assertAlmostEqual(accuracy[-1][2], float(last[4]), places=5)

    def test_histograms_and_pictures_are_there(self):
        self.scalars()
        for kind, run, tag in (("histograms", "alone-1", "weights/conv1/weights"),
                               ("histograms", "alone-1", "gradients/fc3/bias"),
                               ("images", "alone-1", "pictures/samples"),
                               ("images", "coder-1", "pictures/reconstruction")):
            self.server.wait_until(lambda answer: tag in answer.get(run, {}), f"data/plugin/{kind}/tags")

    def test_the_graph_says_where_everything_is(self):
        self.server.wait_until(lambda info: info.get("cluster-1/worker-1", {}).get("run_graph"), "data/plugin/graphs/info")
        text = self.server.get("data/plugin/graphs/graph", run="cluster-1/worker-1", large_attrs_key="",
                               limit_attr_size="1024").decode()
        graph = text_format.Parse(text, graph_pb2.GraphDef())
        devices = {node.device for node in graph.node}
        self.assertIn("/job:ps/task:0/device:CPU:0", devices)
        self.assertIn("/job:worker/task:1/device:CPU:0", devices)
        self.assertTrue(any(node.name.startswith("gradients/") for node in graph.node))

    def test_the_hparams_tab_has_one_session_per_run(self):
        self.scalars()
        ask = {"experimentName": "", "startIndex": 0, "sliceSize": 100,
               "allowedStatuses": ["STATUS_UNKNOWN", "STATUS_SUCCESS", "STATUS_FAILURE", "STATUS_RUNNING"],
               "colParams": [{"metric": {"group": "", "tag": "eval/accuracy"}, "includeInResult": True},
                             {"hparam": "lr", "includeInResult": True}]}
        groups = self.server.wait_until(
            lambda answer: len(answer.get("sessionGroups", [])) == 3
            and all(g["sessions"][0]["status"] == "STATUS_SUCCESS" for g in answer["sessionGroups"]),
            "data/plugin/hparams/session_groups", ask)["sessionGroups"]
        rates = {group["name"]: group["hparams"]["lr"] for group in groups}
        self.assertEqual(set(rates), {"alone-1", "cluster-1", "coder-1"})
        self.assertEqual(rates["alone-1"], 0.002)


unittest.main(argv=sys.argv[:1] + sys.argv[3:])
