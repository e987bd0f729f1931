"""The PyTorch side of bench/compare: answers the requests that bench/worker.cpp describes.

A rung is one way to run PyTorch, named by words that are joined with `+`: `eager`; `fused`, with the optimizer that
takes all parameters at once; `channels-last`; `compile`, which for inference also takes the weights as constants and folds
normalisation into convolutions (freezing), and with one of its modes `compile-reduce-overhead`, which replays CUDA graphs, or
`compile-max-autotune`; `tf32`, for products and convolutions on a GPU; `bf16`, autocast; `huge-pages`, set in the
environment, for PyTorch's allocator. `f64` is eager in double.
"""

import contextlib
import sys
import time
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch.nn import functional as f

import images
import models

sys.path.append(str(Path(__file__).resolve().parents[1]))
from comparison.serve import peak_resident_set, serve  # noqa: E402
from comparison.workloads import WORKLOADS  # noqa: E402


class Worker:
    def open(self, request):
        self.workload = WORKLOADS[request["workload"]]
        self.words = request["rung"].split("+")
        self.device = torch.device(request.get("device", "cpu"))
        self.compile = next((word for word in self.words if word.startswith("compile")), None)
        if self.device.type == "cuda":
            self.set_up_gpu()
        torch.set_num_threads(request["threads"])
        torch.manual_seed(1)
        self.memory_format = torch.channels_last if "channels-last" in self.words else torch.contiguous_format
        self.dtype = torch.float64 if "f64" in self.words else torch.float32
        self.weights = load_file(request["exchange"] + "/weights.safetensors")
        self.network = self.make_network().train()
        self.run = self.compiled(self.network) if self.compile else self.network
        self.optimizer = self.make_optimizer()
        tensors = load_file(request["exchange"] + "/batches.safetensors")
        self.batches = [
            (self.prepared(tensors[f"images.{i}"]), tensors[f"labels.{i}"].to(self.device))
            for i in range(len(tensors) // 2)
        ]
        self.next = 0
        self.plain, self.inputs = None, None

    def set_up_gpu(self):
        torch.cuda.init()  # says what is wrong if there is no GPU
        torch.backends.cudnn.benchmark = True
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = "tf32" in self.words

    def finish(self):
        """Waits until all work is done, before the clock is read."""
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def make_network(self):
        network = models.network(self.workload)
        missing, unexpected = network.load_state_dict(self.weights, strict=False)
        missing = [name for name in missing if not name.endswith("num_batches_tracked")]
        if missing or unexpected:
            raise ValueError(f"the weights do not fit: {missing} missing, {unexpected} not expected")
        network = network.to(self.device, self.dtype)
        return network.to(memory_format=self.memory_format) if self.workload.images else network

    def make_optimizer(self):
        workload = self.workload
        options = {"lr": workload.lr, "weight_decay": workload.weight_decay}
        options["fused"] = True if "fused" in self.words else None
        if workload.adamw:
            return torch.optim.AdamW(self.network.parameters(), **options)
        return torch.optim.SGD(self.network.parameters(), momentum=workload.momentum, **options)

    def compiled(self, network):
        return torch.compile(network, dynamic=False, mode=self.compile.removeprefix("compile").strip("-") or None)

    def prepared(self, x):
        x = x.to(self.device, self.dtype)
        return x.contiguous(memory_format=self.memory_format) if x.dim() == 4 else x

    def autocast(self):
        return torch.autocast(self.device.type, torch.bfloat16) if "bf16" in self.words else contextlib.nullcontext()

    def step(self, x, labels):
        self.optimizer.zero_grad(set_to_none=True)
        if self.compile:
            torch.compiler.cudagraph_mark_step_begin()
        with self.autocast():
            logits = self.run(x)
            loss = f.cross_entropy(logits, labels)
        loss.backward()
        if self.workload.clip > 0:
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.workload.clip)
        self.optimizer.step()
        return loss.item(), logits

    def steps(self, request):
        losses = []
        start = time.perf_counter()
        for _ in range(request["count"]):
            losses.append(self.step(*self.batches[self.next % len(self.batches)])[0])
            self.next += 1
        self.finish()
        return {"seconds": time.perf_counter() - start, "losses": losses}

    def infer(self, request):
        with torch.no_grad() if self.compile else torch.inference_mode(), self.autocast():
            if self.plain is None:
                self.plain = self.make_network().eval()
                if self.compile:
                    torch._inductor.config.freezing = True
                    self.plain = self.compiled(self.plain)
            if self.inputs is None or len(self.inputs) != request["batch"]:
                samples = torch.cat([x for x, _ in self.batches])
                self.inputs = self.prepared(samples[torch.arange(request["batch"]) % len(samples)])
            self.finish()
            start = time.perf_counter()
            for _ in range(request["count"]):
                logits = self.plain(self.inputs)
            self.finish()
            seconds = time.perf_counter() - start
        return {"seconds": seconds, "logits": logits.double().flatten().tolist()}

    def images(self, request):
        def load(train, count):
            data = images.load(self.workload, request["directory"], train, count)
            return [tensor.to(self.device) for tensor in data]

        self.train_images = load(True, request["train"])
        self.test_images = load(False, request["test"])

    def train(self, request):
        return self.passed(self.train_images, self.workload.batch, train=True)

    def evaluate(self, request):
        self.network.eval()
        with torch.no_grad(), self.autocast():
            result = self.passed(self.test_images, 250, train=False)
        self.network.train()
        return result

    def passed(self, data, size, train):
        start = time.perf_counter()
        loss, right = 0.0, 0
        for x, labels in images.batches(self.workload, *data, size, train):
            if train:
                value, logits = self.step(self.prepared(x), labels)
            else:
                logits = self.run(self.prepared(x))
                value = f.cross_entropy(logits, labels).item()
            loss += value * len(labels)
            right += (logits.argmax(1) == labels).sum().item()
        samples = len(data[1])
        seconds = time.perf_counter() - start
        return {"seconds": seconds, "samples": samples, "loss": loss / samples, "accuracy": right / samples}

    def memory(self, request):
        if self.device.type == "cuda":
            return {"peak": torch.cuda.max_memory_allocated()}
        return {"peak": peak_resident_set()}

    def about(self, request):
        about = {"name": "PyTorch", "version": torch.__version__, "build": torch.__config__.show()}
        if request.get("device") == "cuda":
            about |= {"device": torch.cuda.get_device_name(), "CUDA": torch.version.cuda}
            about["cuDNN"] = torch.backends.cudnn.version()
        return about


if __name__ == "__main__":
    serve(Worker())
