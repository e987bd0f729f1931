"""The data sets of the workloads as tensors, and batches of them prepared from bytes, as Taut does it, but a batch at
once, which is faster than a `DataLoader` of samples."""

import gzip
from pathlib import Path

import numpy
import torch
from torch.nn import functional as f

CIFAR10_MEAN = torch.tensor([0.4914, 0.4822, 0.4465]).reshape(1, 3, 1, 1)
CIFAR10_STD = torch.tensor([0.2470, 0.2435, 0.2616]).reshape(1, 3, 1, 1)


def read_idx(directory, name, header):
    for path in sorted(Path(directory).glob(name.replace("-idx", "?idx") + "*")):
        opened = gzip.open(path) if path.suffix == ".gz" else open(path, "rb")
        with opened as file:
            return numpy.frombuffer(file.read(), numpy.uint8, offset=header).copy()
    raise FileNotFoundError(f"there is no {name} in {directory}")


def load(workload, directory, train, count):
    """Pixels as bytes and labels of the first `count` images."""
    directory = Path(directory)
    if not workload.images:
        prefix = "train" if train else "t10k"
        pixels = read_idx(directory / "mnist", prefix + "-images-idx3-ubyte", 16).reshape(-1, 784)
        labels = read_idx(directory / "mnist", prefix + "-labels-idx1-ubyte", 8)
    else:
        names = [f"data_batch_{i}.bin" for i in range(1, 6)] if train else ["test_batch.bin"]
        files = [directory / "cifar-10-batches-bin" / name for name in names]
        records = numpy.concatenate([numpy.fromfile(path, numpy.uint8) for path in files]).reshape(-1, 3073)
        pixels, labels = records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0]
    return torch.from_numpy(pixels[:count].copy()), torch.from_numpy(labels[:count].astype(numpy.int64))


def crop_and_flip(x, padding=4):
    """Moves each image by up to `padding` pixels in both directions, and mirrors half of them."""
    n, channels, height, width = x.shape
    at = {"device": x.device}
    x = f.pad(x, [padding] * 4)
    rows = torch.arange(height, **at) + torch.randint(2 * padding + 1, (n, 1), **at)
    columns = torch.arange(width, **at) + torch.randint(2 * padding + 1, (n, 1), **at)
    columns = torch.where(torch.rand(n, 1, **at) < 0.5, columns.flip(1), columns)
    image = torch.arange(n, **at).reshape(n, 1, 1, 1)
    channel = torch.arange(channels, **at).reshape(1, channels, 1, 1)
    return x[image, channel, rows.reshape(n, 1, height, 1), columns.reshape(n, 1, 1, width)]


def batches(workload, pixels, labels, size, train):
    """All batches of one epoch, in random order for training, prepared on the device where the pixels are."""
    order = (torch.randperm if train else torch.arange)(len(labels), device=labels.device)
    mean, std = CIFAR10_MEAN.to(pixels.device), CIFAR10_STD.to(pixels.device)
    for indices in order.split(size):
        x = pixels[indices]
        if train and workload.augmented:
            x = crop_and_flip(x)
        x = x.float().div_(255)
        yield x.sub_(mean).div_(std) if workload.normalized else x, labels[indices]
