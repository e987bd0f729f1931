"""The workloads of bench/workload.hpp for PyTorch."""

from dataclasses import dataclass

import torch

from models import Mlp, ResNet


@dataclass
class Workload:
    name: str
    batch: int
    lr: float
    momentum: float
    weight_decay: float
    clip: float
    normalized: bool = False  # pixels with mean 0 and deviation 1, instead of from 0 to 1
    augmented: bool = False  # crops with padding 4 and flips

    @property
    def images(self):
        return self.name != "mnist-mlp"

    def network(self):
        if self.name == "mnist-mlp":
            return Mlp([784, 128, 64, 10])
        if self.name == "seed-resnet18":
            return ResNet(True, [2, 2, 2, 2], [64, 128, 256, 512], 10, bias=True)
        if self.name == "cifar-resnet18":
            return ResNet(False, [2, 2, 2, 2], [64, 128, 256, 512], 10)
        return ResNet(False, [3, 3, 3], [16, 32, 64], 10)

    def optimizer(self, parameters, fused):
        if self.name == "frost-resnet20":
            return torch.optim.AdamW(parameters, self.lr, weight_decay=self.weight_decay, fused=fused)
        return torch.optim.SGD(parameters, self.lr, momentum=self.momentum, weight_decay=self.weight_decay, fused=fused)


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("mnist-mlp", 64, 0.01, 0.9, 1e-4, 35),
        Workload("seed-resnet18", 128, 0.01, 0.9, 1e-4, 35),
        Workload("cifar-resnet18", 128, 0.1, 0.9, 5e-4, 0, normalized=True, augmented=True),
        Workload("frost-resnet20", 32, 1e-4, 0, 1e-2, 0, normalized=True),
    )
}
