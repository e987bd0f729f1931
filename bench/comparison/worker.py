"""A process that answers requests, one JSON object a line, and is stopped in between: what waits takes memory, but no
time from the others."""

import contextlib
import json
import os
import signal
import subprocess
import time


class WorkerError(Exception):
    """A worker's message that it could not do what it was asked for."""


class Worker:
    def __init__(self, name, command, environment=None, quiet=False):
        self.name = name
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if quiet else None,
            text=True,
            env={**os.environ, **(environment or {})},
        )

    def ask(self, **request):
        """The answer. Raises `WorkerError` if it is an error, or if the process has died."""
        process = self.process
        try:
            process.send_signal(signal.SIGCONT)
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except (BrokenPipeError, ProcessLookupError):
            line = ""
        if not line:
            process.wait()
            raise WorkerError(f"{self.name}: ended with status {process.returncode} at '{request['do']}'")
        process.send_signal(signal.SIGSTOP)
        try:
            answer = json.loads(line)
        except ValueError:
            raise WorkerError(f"{self.name}: answered {line[:80]!r} to '{request['do']}'") from None
        if "error" in answer:
            raise WorkerError(f"{self.name}: {answer['error']}")
        return answer

    def since_start(self):
        return time.perf_counter() - self.started

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        with contextlib.suppress(BrokenPipeError):  # of a request that it did not live to read
            self.process.stdin.close()
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
