"""The JAX side of bench/compare: answers the requests that bench/worker.cpp describes, but those for real images.

A step and a network are compiled as one function each, and a step gives its buffers to the next. XLA takes as many threads
as NPROC says."""

import sys
import time
from functools import partial
from pathlib import Path

import jax
import numpy
from jax import numpy as jnp
from safetensors.numpy import load_file

import networks

sys.path.append(str(Path(__file__).resolve().parents[1]))
from comparison.serve import peak_resident_set, serve  # noqa: E402
from comparison.workloads import WORKLOADS  # noqa: E402

BETAS, ADAM_EPSILON, CLIP_EPSILON = (0.9, 0.999), 1e-8, 1e-6


def cross_entropy(logits, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).mean()


def clipped(gradients, most):
    norm = jnp.sqrt(sum(jnp.vdot(g, g) for g in gradients.values()))
    scale = jnp.minimum(1, most / (norm + CLIP_EPSILON))
    return {name: g * scale for name, g in gradients.items()}


def first_state(workload, p):
    zeros = {name: jnp.zeros_like(value) for name, value in p.items()}
    if workload.adamw:
        return {"step": jnp.zeros(()), "mean": zeros, "square": {name: jnp.zeros_like(v) for name, v in p.items()}}
    return {"momentum": zeros}


def sgd(w, p, g, state):
    momentum = {k: w.momentum * state["momentum"][k] + (g[k] + w.weight_decay * p[k]) for k in p}
    return {k: p[k] - w.lr * momentum[k] for k in p}, {"momentum": momentum}


def adamw(w, p, g, state):
    step = state["step"] + 1
    mean = {k: BETAS[0] * state["mean"][k] + (1 - BETAS[0]) * g[k] for k in p}
    square = {k: BETAS[1] * state["square"][k] + (1 - BETAS[1]) * jnp.square(g[k]) for k in p}
    rate, root = w.lr / (1 - BETAS[0] ** step), jnp.sqrt(1 - BETAS[1] ** step)
    moved = {k: rate * mean[k] / (jnp.sqrt(square[k]) / root + ADAM_EPSILON) for k in p}
    p = {k: (1 - w.lr * w.weight_decay) * p[k] - moved[k] for k in p}
    return p, {"step": step, "mean": mean, "square": square}


@partial(jax.jit, static_argnums=0, donate_argnums=(1, 2, 3))
def train_step(workload, p, buffers, state, x, labels):
    def loss_of(p):
        logits, updated = networks.logits(workload, p, buffers, x, train=True)
        return cross_entropy(logits, labels), updated

    (loss, buffers), gradients = jax.value_and_grad(loss_of, has_aux=True)(p)
    if workload.clip > 0:
        gradients = clipped(gradients, workload.clip)
    p, state = (adamw if workload.adamw else sgd)(workload, p, gradients, state)
    return p, buffers, state, loss


@partial(jax.jit, static_argnums=0)
def evaluate(workload, p, buffers, x):
    return networks.logits(workload, p, buffers, x, train=False)[0]


class Worker:
    def open(self, request):
        self.workload = WORKLOADS[request["workload"]]
        self.weights = load_file(request["exchange"] + "/weights.safetensors")
        self.p, self.buffers = self.parameters()
        self.state = first_state(self.workload, self.p)
        tensors = load_file(request["exchange"] + "/batches.safetensors")
        self.batches = [
            (self.prepared(tensors[f"images.{i}"]), jnp.asarray(tensors[f"labels.{i}"].astype(numpy.int32)))
            for i in range(len(tensors) // 2)
        ]
        self.next = 0
        self.plain, self.inputs = None, None

    def parameters(self):
        values = {k: jnp.asarray(networks.from_pytorch(k, v)) for k, v in self.weights.items() if v.ndim > 0}
        return [{k: v for k, v in values.items() if (".running_" in k) == wanted} for wanted in (False, True)]

    def prepared(self, x):
        return jnp.asarray(x.transpose(0, 2, 3, 1) if x.ndim == 4 else x)

    def steps(self, request):
        losses = []
        start = time.perf_counter()
        for _ in range(request["count"]):
            batch = self.batches[self.next % len(self.batches)]
            self.p, self.buffers, self.state, loss = train_step(
                self.workload, self.p, self.buffers, self.state, *batch
            )
            losses.append(float(loss))
            self.next += 1
        jax.block_until_ready(self.p)
        return {"seconds": time.perf_counter() - start, "losses": losses}

    def infer(self, request):
        if self.plain is None:
            self.plain = self.parameters()
        if self.inputs is None or len(self.inputs) != request["batch"]:
            samples = numpy.concatenate([x for x, _ in self.batches])
            self.inputs = jnp.asarray(samples[numpy.arange(request["batch"]) % len(samples)])
        start = time.perf_counter()
        for _ in range(request["count"]):
            logits = evaluate(self.workload, *self.plain, self.inputs).block_until_ready()
        seconds = time.perf_counter() - start
        return {"seconds": seconds, "logits": logits.astype(float).flatten().tolist()}

    def memory(self, request):
        return {"peak": peak_resident_set()}

    def about(self, request):
        return {"name": "JAX", "version": jax.__version__}


if __name__ == "__main__":
    serve(Worker())
