"""Makes the files of this folder with PyTorch, ONNX's exporter and a fixed seed:
make_lenet.py (needs torch, onnx and onnxscript)

lenet.onnx   a LeNet as the older exporter writes it: a view through Shape, Gather, Unsqueeze and Concat, any batch,
             LogSoftmax at its end
small.onnx   a small network as the newer exporter writes it
*.expected   float32: the logits of both for two images, whose pixel i is (i * 37 % 256) / 255
"""

import pathlib

import onnx
import torch
from torch import nn
from torch.nn import functional

FOLDER = pathlib.Path(__file__).parent


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(400, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def logits(self, x):
        x = functional.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = functional.max_pool2d(torch.relu(self.conv2(x)), 2)
        x = x.view(x.size(0), -1)
        return self.fc3(torch.relu(self.fc2(torch.relu(self.fc1(x)))))

    def forward(self, x):
        return functional.log_softmax(self.logits(x), dim=1)


class Small(nn.Module):
    """Ops that LeNet does not have: strides, average pooling, flatten, scalars, a mean over the image."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, stride=2, padding=1)
        self.fc1 = nn.Linear(4 * 7 * 7, 16)
        self.fc2 = nn.Linear(16, 10, bias=False)
        self.gain = nn.Parameter(torch.tensor([1.5] * 10))

    def logits(self, x):
        x = functional.avg_pool2d(torch.tanh(self.conv((x - 0.25) * 2)), 2)
        level = x.mean(dim=(2, 3)).sum(dim=1, keepdim=True)
        x = torch.sigmoid(self.fc1(x.flatten(1))) + level / 3
        return self.fc2(x) * self.gain

    forward = logits


def images():
    pixels = torch.arange(2 * 28 * 28) * 37 % 256
    return (pixels / 255).to(torch.float32).view(2, 1, 28, 28)


def write_expected(name, model):
    with torch.no_grad():
        model.logits(images()).numpy().astype("<f4").tofile(FOLDER / f"{name}.expected")


def remove_traces(path):
    """Removes the lines of Python that the newer exporter notes for each node."""
    model = onnx.load(path)
    for part in [*model.graph.node, *model.graph.value_info, *model.graph.input, *model.graph.output, model.graph]:
        del part.metadata_props[:]
    onnx.save(model, path)


def main():
    torch.manual_seed(1)
    lenet = LeNet().eval()
    torch.onnx.export(lenet, (images(),), str(FOLDER / "lenet.onnx"), dynamo=False, opset_version=13,
                      input_names=["x"], output_names=["y"], dynamic_axes={"x": {0: "n"}, "y": {0: "n"}})
    write_expected("lenet", lenet)
    small = Small().eval()
    torch.onnx.export(small, (images(),), str(FOLDER / "small.onnx"), dynamo=True, external_data=False,
                      input_names=["x"], output_names=["y"], dynamic_shapes=({0: torch.export.Dim("n")},))
    remove_traces(FOLDER / "small.onnx")
    write_expected("small", small)


main()
