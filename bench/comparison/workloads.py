"""The workloads of bench/workload.hpp for the other libraries."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Workload:
    name: str
    batch: int
    widths: tuple  # of the layers of a multi-layer perceptron, or of the stages of a residual network
    blocks: tuple  # of each stage, or none
    lr: float
    momentum: float
    weight_decay: float
    clip: float
    adamw: bool = False  # instead of SGD
    large_stem: bool = False  # 7 x 7 with stride 2 and max pooling, instead of 3 x 3
    conv_bias: bool = False
    normalized: bool = False  # pixels with mean 0 and deviation 1, instead of from 0 to 1
    augmented: bool = False  # crops with padding 4 and flips

    @property
    def images(self):
        return bool(self.blocks)


RESNET18 = {"widths": (64, 128, 256, 512), "blocks": (2, 2, 2, 2), "batch": 128, "momentum": 0.9}
RESNET20 = {"widths": (16, 32, 64), "blocks": (3, 3, 3), "batch": 32, "momentum": 0}
MLP = {"widths": (784, 128, 64, 10), "blocks": (), "batch": 64, "momentum": 0.9}
SEED = {"large_stem": True, "conv_bias": True}
CIFAR = {"normalized": True, "augmented": True}
FROST = {"normalized": True, "adamw": True}

WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("mnist-mlp", **MLP, lr=0.01, weight_decay=1e-4, clip=35),
        Workload("seed-resnet18", **RESNET18, lr=0.01, weight_decay=1e-4, clip=35, **SEED),
        Workload("cifar-resnet18", **RESNET18, lr=0.1, weight_decay=5e-4, clip=0, **CIFAR),
        Workload("frost-resnet20", **RESNET20, lr=1e-4, weight_decay=1e-2, clip=0, **FROST),
    )
}
