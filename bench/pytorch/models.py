"""The networks of the benchmarks and of the fixtures, under torchvision's names."""

from torch import nn
from torch.nn import functional as f


class Mlp(nn.Module):
    """Linear layers with ReLU between them, called layers.0, layers.1, … as Taut's."""

    def __init__(self, widths):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = layer(x if i == 0 else f.relu(x))
        return x


class BasicBlock(nn.Module):
    def __init__(self, inputs, outputs, stride, bias):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=bias)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=bias)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            conv = nn.Conv2d(inputs, outputs, 1, stride, bias=bias)
            self.downsample = nn.Sequential(conv, nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = f.relu(self.bn1(self.conv1(x)))
        shortcut = x if self.downsample is None else self.downsample(x)
        return f.relu(self.bn2(self.conv2(y)) + shortcut)


class ResNet(nn.Module):
    def __init__(self, large, blocks, widths, classes, bias=False):
        super().__init__()
        self.large = large
        self.conv1 = nn.Conv2d(3, widths[0], 7 if large else 3, 2 if large else 1, 3 if large else 1, bias=bias)
        self.bn1 = nn.BatchNorm2d(widths[0])
        inputs = widths[0]
        for stage, (count, outputs) in enumerate(zip(blocks, widths)):
            layers = []
            for i in range(count):
                layers.append(BasicBlock(inputs, outputs, 2 if stage > 0 and i == 0 else 1, bias))
                inputs = outputs
            setattr(self, f"layer{stage + 1}", nn.Sequential(*layers))
        self.stages = len(blocks)
        self.fc = nn.Linear(inputs, classes)

    def forward(self, x):
        x = f.relu(self.bn1(self.conv1(x)))
        if self.large:
            x = f.max_pool2d(x, 3, 2, 1)
        for stage in range(self.stages):
            x = getattr(self, f"layer{stage + 1}")(x)
        return self.fc(x.mean((2, 3)))


def network(workload):
    """That of a workload, as comparison/workloads.py describes it."""
    if not workload.images:
        return Mlp(workload.widths)
    return ResNet(workload.large_stem, workload.blocks, workload.widths, 10, bias=workload.conv_bias)
