"""Medians, quartiles, and which rung is the one to beat."""

import statistics


def median(values):
    return statistics.median(values)


def quartiles(values):
    """The first, the second and the third."""
    return statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3


def is_single(name):
    """Whether a side computes in single precision."""
    return "bf16" not in name


def is_f32_rung(name):
    return not name.startswith("taut") and is_single(name)


def fastest(sides, what, wanted):
    """The name of the side with the least median among those whose name is wanted, or None."""
    names = [name for name, result in sides.items() if wanted(name) and result.get(what)]
    return min(names, key=lambda name: median(sides[name][what]), default=None)


def fastest_rung(sides, what):
    """The name of PyTorch's fastest rung in f32, or None; `sides` has the measurements by name."""
    return fastest(sides, what, is_f32_rung)


def best_ratios(sides, what):
    """Of our fastest side to PyTorch's fastest rung in f32."""
    ours = fastest(sides, what, lambda name: name.startswith("taut"))
    return ratios(sides, what, fastest_rung(sides, what), ours)


def ratios(sides, what, rung, ours="taut"):
    """How many times faster than the rung we are, pair by pair; None where a side is missing."""
    theirs, own = sides.get(rung, {}).get(what), sides.get(ours, {}).get(what)
    if not theirs or not own:
        return None
    return [a / b for a, b in zip(theirs, own)]


def difference(ours, theirs):
    """The largest relative difference of two curves, and where they first differ by more than a thousandth."""
    relative = [abs(a - b) / abs(b) for a, b in zip(ours, theirs)]
    apart = next((i for i, value in enumerate(relative, 1) if not value <= 1e-3), None)
    return {
        "first": relative[0],
        "largest": max(relative, key=lambda value: value if value == value else float("inf")),
        "step_apart": apart,
    }
