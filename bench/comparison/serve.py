"""How a worker in Python answers: one JSON object a line, of which `do` names one of its methods."""

import json
import sys

REQUESTS = ("open", "steps", "infer", "images", "train", "evaluate", "memory", "about")


def answer(worker, line):
    """A failure is an answer, too."""
    try:
        request = json.loads(line)
        if request["do"] not in REQUESTS:
            raise ValueError(f"there is no request {request['do']!r}")
        return getattr(worker, request["do"])(request) or {}
    except Exception as error:  # whatever a rung cannot do
        return {"error": f"{type(error).__name__}: {error}"}


def serve(worker):
    for line in sys.stdin:
        print(json.dumps(answer(worker, line)), flush=True)


def peak_resident_set():
    """The most memory that the process has had, in bytes."""
    with open("/proc/self/status") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmHWM:"))
