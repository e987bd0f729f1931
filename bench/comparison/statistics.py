"""Medians, quartiles, and which rung is the one to beat."""

import statistics


def median(values):
    return statistics.median(values)


def quartiles(values):
    """The first, the second and the third."""
    return statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3


def is_f32_rung(name):
    return not name.startswith("taut") and "bf16" not in name


def fastest_rung(sides, what):
    """The name of PyTorch's fastest rung in f32 by its median, or None; `sides` has the measurements by name."""
    rungs = [name for name, result in sides.items() if is_f32_rung(name) and result.get(what)]
    return min(rungs, key=lambda name: median(sides[name][what]), default=None)


def ratios(sides, what, rung, ours="taut"):
    """How many times faster than the rung we are, pair by pair; None where a side is missing."""
    theirs, own = sides.get(rung, {}).get(what), sides.get(ours, {}).get(what)
    if not theirs or not own:
        return None
    return [a / b for a, b in zip(theirs, own)]
