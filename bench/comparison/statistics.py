"""Medians, quartiles, and which rung is the one to beat."""

import statistics

from .environment import OTHERS


def median(values):
    return statistics.median(values)


def quartiles(values):
    """The first, the second and the third."""
    return statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3


def precision(name):
    """What a side computes in: bf16, tf32 or f32."""
    return next((word for word in ("bf16", "tf32") if word in name), "f32")


def is_taut(name):
    return name.startswith("taut")


def is_pytorch(name):
    return not is_taut(name) and name not in OTHERS


def fastest(sides, what, wanted):
    """The name of the side with the least median among those whose name is wanted, or None."""
    names = [name for name, result in sides.items() if wanted(name) and result.get(what)]
    return min(names, key=lambda name: median(sides[name][what]), default=None)


def fastest_rung(sides, what, wanted="f32"):
    """The name of PyTorch's fastest rung of a precision, or None; `sides` has the measurements by name."""
    return fastest(sides, what, lambda name: is_pytorch(name) and precision(name) == wanted)


def best_ratios(sides, what, wanted="f32"):
    """Of our fastest side to PyTorch's fastest rung, both of a precision."""
    ours = fastest(sides, what, lambda name: is_taut(name) and precision(name) == wanted)
    return ours and ratios(sides, what, fastest_rung(sides, what, wanted), ours)


def counterpart(sides, rung):
    """Our side to hold a rung against: that of its precision, if there is one."""
    own = f"taut {precision(rung)}"
    return own if own in sides and own != rung else "taut"


def ratios(sides, what, rung, ours=None):
    """How many times faster than the rung we, its counterpart unless said, are, pair by pair; None where a side is
    missing."""
    theirs = sides.get(rung, {}).get(what)
    own = theirs and sides.get(ours or counterpart(sides, rung), {}).get(what)
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
