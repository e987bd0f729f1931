"""What a comparison runs on: Taut's build, PyTorch's virtual environment, and what to say of the machine."""

import os
import platform
import re
import subprocess
import sys
import venv
from pathlib import Path

from .worker import Worker, WorkerError

PACKAGES = ["torch", "numpy", "safetensors", "matplotlib"]
OTHERS = ("jax",)  # libraries that stand beside PyTorch: rungs, packages and directories of that name


class Failure(Exception):
    """What ends a comparison, as a message to its user."""


def build_taut(source, build, device):
    """Builds the worker of Taut and returns the command that starts it."""
    configure = [
        "cmake",
        "-S",
        source,
        "-B",
        build,
        "-DCMAKE_BUILD_TYPE=Release",
        "-DTAUT_BUILD_BENCH=ON",
        "-DTAUT_NATIVE=ON",
        "-DTAUT_SANITIZE=",
    ]
    name = "worker"
    if device == "cuda":
        name = "worker_cuda"
        configure += ["-DTAUT_CUDA=ON", "-DCMAKE_CUDA_ARCHITECTURES=native"]
    compilation = ["cmake", "--build", build, "--target", f"bench_{name}", "--parallel", str(os.cpu_count())]
    for command in (configure, compilation):
        try:
            done = subprocess.run(command, capture_output=True, text=True)
        except OSError as error:
            raise Failure(f"Taut cannot be built: {error}") from None
        if done.returncode != 0:
            raise Failure(f"Taut cannot be built: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return [str(Path(build) / "bench" / name)]


def failure_of(python, code):
    """The last line that Python says of code which fails, or None."""
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    except OSError as error:
        return str(error)
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]


def find_pytorch(options):
    """The Python to run PyTorch by: the one that was named, or that of the virtual environment, which is made. None,
    and a message, if there is no PyTorch, or not for the device."""
    if options.python == "none":
        return None
    python = Path(options.python) if options.python else set_up_pytorch(options.environment, others_of(options.rungs))
    code = "import torch, numpy, safetensors" + ("; torch.cuda.init()" if options.device == "cuda" else "")
    failure = python and failure_of(python, code)
    if failure:
        print(f"PyTorch cannot be had from {python}, so its columns stay empty: {failure}")
    return None if failure else python


def set_up_pytorch(directory, others):
    """Installs PyTorch, and other libraries if they can be had, in a virtual environment unless they are there. Returns
    its Python, or None if there is no PyTorch."""
    python = directory / "bin/python"

    def imports(*modules):
        command = [python, "-c", "import " + ", ".join(modules)]
        return python.exists() and subprocess.run(command, capture_output=True).returncode == 0

    def install(name, *packages):
        print(f"setting {name} up in {directory}", flush=True)
        try:
            if not python.exists():
                venv.create(directory, with_pip=True)
            subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"setting {name} up failed: {error}")

    if not imports(*PACKAGES):
        install("PyTorch", *PACKAGES)
    if not imports("torch", "numpy", "safetensors"):
        print("PyTorch cannot be had, so its columns stay empty")
        return None
    for package in others:
        if not imports(package):
            install(package, package)
    return python


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines() if os.path.exists("/proc/cpuinfo") else []:
        if line.startswith("model name"):
            return re.sub(r"\(R\)|\(TM\)|CPU|@.*", "", line.split(":", 1)[1]).strip()
    return platform.processor() or platform.machine()


def gpu():
    """The name of the first GPU, or None."""
    try:
        command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError:
        return None
    return done.stdout.strip().splitlines()[0] if done.returncode == 0 and done.stdout.strip() else None


def memory_bytes():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def describe(taut, python, device, rungs):
    """Machine, versions and flags of what runs by these rungs."""
    about = {
        "processor": processor(),
        "cores": os.cpu_count(),
        "memory": memory_bytes(),
        "system": platform.platform(),
        "python": sys.version.split()[0],
    }
    if device == "cuda":
        about["gpu"] = gpu()
    sides = {"taut": taut}
    if python:
        sides["pytorch"] = worker_command(python, "pytorch")
        sides |= {name: worker_command(python, name) for name in others_of(rungs)}
    for side, command in sides.items():
        with Worker(side, command) as worker:
            try:
                about[side] = worker.ask(do="about", device=device)
            except WorkerError as error:
                about[side] = {"error": str(error)}
    return about


def commit():
    """The commit of the tree, with a + where files of it were changed since."""
    source = Path(__file__).resolve().parents[2]

    def git(*arguments):
        try:
            return subprocess.run(["git", "-C", source, *arguments], capture_output=True, text=True).stdout.strip()
        except OSError:
            return ""

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "include", "bench", ":(exclude)bench/results")
    return (git("rev-parse", "--short", "HEAD") or "unknown") + ("+" if changed else "")


def write_exchange(taut, workload, directory, **options):
    """Writes what both sides start from to a directory, which is made; `count` batches, and how large, are options."""
    directory.mkdir(exist_ok=True)
    with Worker("taut", taut) as worker:
        worker.ask(do="exchange", workload=workload, directory=str(directory), **options)


def others_of(rungs):
    """The libraries beside PyTorch that rungs stand for."""
    return [rung for rung in rungs if rung in OTHERS]


def compiles(rung):
    """Whether it compiles before its first step, which takes long."""
    return "compile" in rung or rung in OTHERS


def worker_command(python, library):
    """What starts the worker in Python of a library, which has a directory beside this one."""
    return [str(python), str(Path(__file__).resolve().parents[1] / library / "worker.py")]
