"""Profiles of Taut's own training steps."""

import tempfile
from pathlib import Path

from .environment import write_exchange
from .report import title
from .worker import Worker


def of_step(taut, workload, threads, exchange, trace=None):
    """Operators of a step with their calls, seconds, flops and bytes, and the floor that the machine sets."""
    with Worker("taut", taut) as worker:
        worker.ask(do="open", workload=workload, exchange=str(exchange), threads=threads, rung="profiled")
        seconds = worker.ask(do="steps", count=2)["seconds"] / 2
        request = {"trace": str(trace)} if trace else {}
        return worker.ask(do="profile", count=max(3, min(100, round(1 / seconds))), **request)


def run(taut, options):
    for workload in options.workloads:
        for threads in options.threads:
            with tempfile.TemporaryDirectory() as exchange:
                write_exchange(taut, workload, Path(exchange), count=4)
                trace = options.output / f"{workload}-{threads}.trace.json"
                profile = of_step(taut, workload, threads, Path(exchange), trace)
            print(
                f"\n{title(workload, threads)}: {1e3 * profile['seconds']:.3f} ms a step, "
                f"floor {1e3 * profile['floor']:.3f} ms ({100 * profile['floor'] / profile['seconds']:.0f} %)"
            )
            print(profile["report"])
            print(f"trace, to be opened in Perfetto: {trace}")
