"""The networks of the workloads in JAX, as functions of parameters by name. Images are [batch, height, width, channels],
kernels [height, width, inputs, outputs] and the weights of linear layers [inputs, outputs], as XLA likes them best."""

import jax
from jax import lax
from jax import numpy as jnp

MOMENTUM, EPSILON = 0.1, 1e-5  # of batch normalisation


def from_pytorch(name, value):
    """A parameter as PyTorch stores it, in the order of axes used here."""
    if value.ndim == 4:
        return value.transpose(2, 3, 1, 0)
    return value.T if value.ndim == 2 else value


def linear(p, name, x):
    return x @ p[name + ".weight"] + p[name + ".bias"]


def mlp(workload, p, x):
    count = len(workload.widths) - 1
    for i in range(count):
        x = linear(p, f"layers.{i}", x if i == 0 else jax.nn.relu(x))
    return x


class Scope:
    """Parameters and running statistics; those of a training step replace the earlier ones in `updated`."""

    def __init__(self, p, buffers, train):
        self.p, self.buffers, self.train, self.updated = p, buffers, train, {}

    def conv(self, name, x, stride=1, padding=1):
        w = self.p[name + ".weight"]
        around = [(padding, padding)] * 2
        y = lax.conv_general_dilated(x, w, (stride, stride), around, dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return y + self.p[name + ".bias"] if name + ".bias" in self.p else y

    def batch_norm(self, name, x):
        running = {key: self.buffers[f"{name}.running_{key}"] for key in ("mean", "var")}
        if self.train:
            mean = x.mean((0, 1, 2))
            var = jnp.square(x - mean).mean((0, 1, 2))
            count = x.size // x.shape[-1]
            for key, value in (("mean", mean), ("var", var * (count / (count - 1)))):
                self.updated[f"{name}.running_{key}"] = (1 - MOMENTUM) * running[key] + MOMENTUM * value
        else:
            mean, var = running["mean"], running["var"]
        scale = self.p[name + ".weight"] * lax.rsqrt(var + EPSILON)
        return x * scale + (self.p[name + ".bias"] - mean * scale)

    def block(self, name, x, stride):
        y = jax.nn.relu(self.batch_norm(name + ".bn1", self.conv(name + ".conv1", x, stride)))
        y = self.batch_norm(name + ".bn2", self.conv(name + ".conv2", y))
        if name + ".downsample.0.weight" in self.p:
            x = self.batch_norm(name + ".downsample.1", self.conv(name + ".downsample.0", x, stride, 0))
        return jax.nn.relu(y + x)


def resnet(workload, scope, x):
    large = workload.large_stem
    x = scope.conv("conv1", x, *((2, 3) if large else (1, 1)))
    x = jax.nn.relu(scope.batch_norm("bn1", x))
    if large:
        around = [(0, 0), (1, 1), (1, 1), (0, 0)]
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), around)
    for stage, count in enumerate(workload.blocks, 1):
        for i in range(count):
            x = scope.block(f"layer{stage}.{i}", x, 2 if stage > 1 and i == 0 else 1)
    return linear(scope.p, "fc", x.mean((1, 2)))


def logits(workload, p, buffers, x, train):
    """What the network says of x, and the running statistics afterwards."""
    if not workload.images:
        return mlp(workload, p, x), buffers
    scope = Scope(p, buffers, train)
    return resnet(workload, scope, x), {**buffers, **scope.updated}
