"""The measurements of one workload on one number of threads."""

import datetime
from pathlib import Path

from . import environment, profile
from .environment import OTHERS, worker_command, write_exchange
from .statistics import difference, fastest_rung, is_taut, precision
from .worker import Worker, WorkerError
from .workloads import WORKLOADS

COMPARED_STEPS = 20  # losses that are held against each other
BATCHES = (1, 256)  # of inference
IMAGES = {
    "cpu": dict(zip(WORKLOADS, [(60000, 10000), (2560, 1000), (512, 250), (1280, 500)])),
    "cuda": dict(zip(WORKLOADS, [(60000, 10000)] + [(12800, 2500)] * 3)),
}  # of an epoch: all, or as many as take seconds
TAUT = {
    "cpu": {"taut": "f32", "taut folded": "folded"},
    "cuda": {
        "taut": "f32",
        "taut tf32": "tf32",
        "taut bf16": "bf16",
        "taut graph": "f32+graph",
        "taut tf32 graph": "tf32+graph",
        "taut bf16 graph": "bf16+graph",
        "taut folded": "f32+folded",
        "taut tf32 folded": "tf32+folded",
        "taut bf16 folded": "bf16+folded",
    },
}  # our sides and their rungs; what is folded only infers, and graphs are of training steps


class Side:
    """Taut or a rung of PyTorch: its process and what was measured of it. After a failure it is left alone."""

    def __init__(self, name, start, open_request):
        self.name, self.start, self.open_request = name, start, open_request
        self.worker, self.result = None, {}

    def attempt(self, what, action):
        if "error" in self.result:
            return None
        try:
            return action()
        except WorkerError as error:
            print(f"  {error} ({what}): its columns stay empty", flush=True)
            self.result["error"] = str(error)
            self.close()
            return None

    def ask(self, what, **request):
        return self.attempt(what, lambda: self.worker.ask(**request))

    def first_step(self):
        """Starts the process anew; returns its first loss and the seconds from its start to it."""

        def action():
            self.close()
            self.worker = self.start()
            self.worker.ask(**self.open_request)
            loss = self.worker.ask(do="steps", count=1)["losses"][0]
            return loss, self.worker.since_start()

        return self.attempt("first step", action)

    def close(self):
        if self.worker:
            self.worker.close()
            self.worker = None


def trains(side):
    return "folded" not in side.name


def sides_of(taut, python, workload, threads, options, exchange, scratch):
    common = {"do": "open", "workload": workload, "exchange": str(exchange), "threads": threads}

    def opened(rung):
        return common | {"rung": rung, "device": options.device}

    variables = {"OMP_NUM_THREADS": str(threads), "NPROC": str(threads)}  # the latter is XLA's
    huge_pages = {"THP_MEM_ALLOC_ENABLE": "1", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
    sides = [Side(n, lambda n=n: Worker(n, taut), opened(rung)) for n, rung in TAUT[options.device].items()]
    if workload == "mnist-mlp":
        sides = [side for side in sides if trains(side)]  # it has nothing to fold
    for rung in options.rungs if python else []:
        if workload == "mnist-mlp" and "channels-last" in rung:
            rung = rung.replace("channels-last+", "")
        if rung not in [side.name for side in sides]:
            own = variables | (huge_pages if "huge-pages" in rung else {})
            own["TORCHINDUCTOR_CACHE_DIR"] = str(scratch / f"{workload}-{threads}-{rung}")  # each compiles on its own
            command = worker_command(python, rung if rung in OTHERS else "pytorch")
            start = lambda r=rung, c=command, e=own: Worker(r, c, e, quiet=True)  # noqa: E731
            sides.append(Side(rung, start, opened(rung)))
    return sides


def run(taut, python, workload, threads, options, scratch, publish):
    """Measures a workload. `publish` is called with the results so far each time that there are more of them."""
    exchange = scratch / workload
    write_exchange(taut, workload, exchange, count=COMPARED_STEPS)
    sides = sides_of(taut, python, workload, threads, options, exchange, scratch)
    training = [side for side in sides if trains(side)]
    result = {
        "workload": workload,
        "threads": threads,
        "device": options.device,
        "date": datetime.date.today().isoformat(),
        "commit": environment.commit(),
        "sides": {side.name: side.result for side in sides},
        "pairs": options.pairs,
        "profile": None,
        "double": None,
    }
    try:
        start_up(training, options)
        losses(training)
        steps(training, options)
        for side in training:
            side.result["memory"] = side.ask("memory", do="memory")
        publish(result)
        if options.data:
            passes(training, workload, options)
        for side in sides:
            if side not in training:
                side.first_step()
        for batch in BATCHES:
            inference([side for side in sides if infers(side)], batch, options)
            publish(result)
    finally:
        for side in sides:
            side.close()
    if options.device == "cpu":
        result["profile"] = profile_of(taut, workload, threads, exchange)
        if not options.quick:
            result["double"] = double_parity(taut, python, workload, threads, scratch)
    return result


def profile_of(taut, workload, threads, exchange):
    try:
        return profile.of_step(taut, workload, threads, exchange)
    except WorkerError as error:
        print(f"  {error} (profile)")
        return None


def start_up(sides, options):
    """Start to first step, of fresh processes; what compiles, which takes long, once."""
    for side in sides:
        side.result["start_up"] = []
    for round_ in range(options.starts):
        for side in sides:
            if round_ > 0 and environment.compiles(side.name):
                continue
            first = side.first_step()
            if first:
                side.result["losses"] = [first[0]]
                side.result["start_up"].append(first[1])
    for side in sides:
        times = side.result["start_up"]
        print(f"  {side.name}: first step after {min(times):.2f} s" if times else f"  {side.name}: none", flush=True)


def losses(sides):
    """The next losses from the same weights on the same batches, of which the first is known."""
    for side in sides:
        answer = side.ask("losses", do="steps", count=COMPARED_STEPS - 1)
        if answer:
            side.result["losses"] += answer["losses"]


def in_turn(sides, pairs, what, seconds):
    """`pairs` rounds, in each of which all sides are measured one after the other."""
    times = {side.name: [] for side in sides}
    for _ in range(pairs):
        for side in sides:
            value = side.attempt(what, lambda s=side: seconds(s))
            if value is not None:
                times[side.name].append(value)
    for side in sides:
        if "error" not in side.result:
            side.result[what] = times[side.name]


def count_for(side, target, **request):
    """How many calls take about `target` seconds, after a first few as a warm-up."""
    answer = side.ask("warm-up", count=1, **request)
    answer = answer and side.ask("warm-up", count=2, **request)
    return max(1, round(target * 2 / answer["seconds"])) if answer else 1


def steps(sides, options):
    counts = {side.name: count_for(side, options.seconds, do="steps") for side in sides}
    in_turn(sides, options.pairs, "step", lambda side: per_call(side, counts[side.name], do="steps"))


def inference(sides, batch, options):
    key = f"infer {batch}"
    counts = {side.name: count_for(side, options.seconds, do="infer", batch=batch) for side in sides}
    in_turn(sides, options.pairs, key, lambda side: per_call(side, counts[side.name], do="infer", batch=batch))
    reference = sides[0].ask(key, do="infer", batch=batch, count=1)
    for side in sides:
        answer = side.ask(key, do="infer", batch=batch, count=1)
        if answer and reference:
            scale = max(abs(value) for value in reference["logits"])
            off = max(abs(a - b) for a, b in zip(answer["logits"], reference["logits"]))
            side.result[f"logits {batch}"] = off / scale


def per_call(side, count, **request):
    return side.worker.ask(count=count, **request)["seconds"] / count


def infers(side):
    return "graph" not in side.name


def passes(sides, workload, options):
    """An epoch with the real loader, and that with an evaluation: Taut against eager PyTorch and the fastest rung of
    each precision."""
    name = "mnist" if workload == "mnist-mlp" else "cifar-10-batches-bin"
    if not (Path(options.data) / name).is_dir():
        print(f"  there is no {name} in {options.data}: nothing is measured on it")
        return
    train, test = IMAGES[options.device][workload]
    results = {side.name: side.result for side in sides}
    ours = [side.name for side in sides if is_taut(side.name) and infers(side)]
    best = [fastest_rung(results, "step", precision(name)) for name in ours]
    chosen = [side for side in sides if side.name in [*ours, "eager", *best]]
    for side in chosen:
        side.ask("images", do="images", directory=str(options.data), train=train, test=test)
        side.ask("warm-up", do="train")
        side.ask("warm-up", do="evaluate")
    pairs = min(options.pairs, 7)
    in_turn(chosen, pairs, "epoch", lambda side: side.worker.ask(do="train"))
    in_turn(chosen, pairs, "evaluation", lambda side: side.worker.ask(do="evaluate"))


def double_parity(taut, python, workload, threads, scratch, batch=16, count=10):
    """Losses of small batches in double precision, where rounding does not drive the two sides apart."""
    if not python:
        return None
    exchange = scratch / f"{workload}-double"
    curves = []
    try:
        write_exchange(taut, workload, exchange, count=count, batch=batch)
        for name, command in (("taut", taut), ("f64", worker_command(python, "pytorch"))):
            with Worker(name, command) as worker:
                worker.ask(do="open", workload=workload, exchange=str(exchange), threads=threads, rung="f64")
                curves.append(worker.ask(do="steps", count=count)["losses"])
    except WorkerError as error:
        print(f"  {error} (double precision)")
        return None
    return {"batch": batch, "steps": count, **difference(curves[1], curves[0])}
