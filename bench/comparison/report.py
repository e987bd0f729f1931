"""The results as .json, all that was measured, and as .md, the tables."""

import json

from .environment import OTHERS
from .statistics import best_ratios, difference, fastest_rung, is_taut, median, precision, quartiles, ratios

HEADLINES = {
    "step": "training step",
    "infer 1": "inference, batch 1",
    "infer 256": "inference, batch 256",
    "epoch": "epoch",
    "epoch + evaluation": "epoch + evaluation",
}


def title(workload, threads, device="cpu"):
    """What a run is called; on a GPU the threads of the host matter little."""
    return f"{workload} on a GPU" if device == "cuda" else f"{workload}, {threads} thread{'s' if threads > 1 else ''}"


def file_of(path, ending):
    return path.parent / (path.name + ending)


def read(path):
    """The results that `write` wrote, or None."""
    file = file_of(path, ".json")
    return json.loads(file.read_text()) if file.exists() else None


def write(results, path):
    file_of(path, ".json").write_text(json.dumps(results, indent=1) + "\n")
    file_of(path, ".md").write_text("\n\n".join(sections(results)) + "\n")


def sections(results):
    about = results["machine"]
    yield f"# Taut and PyTorch on {about.get('gpu') or about['processor']}"
    yield machine_text(about)
    yield (
        "How many times faster Taut is than PyTorch's fastest rung of the same precision, f32 unless another one is "
        "named, in the same column, for epochs of eager and the rung with the fastest step: the median of pairs that ran in turn [quartiles]; inference is "
        "the faster one of the network as it was "
        "trained and that with its normalisation folded (PyTorch's compiler folds, too). Memory: Taut's peak resident "
        "set, or memory of the GPU, while it trains by that of PyTorch's fastest rung. Start-up: from the start of the process to the end of "
        "the first step, Taut by eager PyTorch. Share of floor: the least time in which this machine could do a step's "
        "operations and traffic, operator by operator, by the time of the step; Winograd's convolutions take fewer "
        "operations than are counted. An empty cell was not measured."
    )
    yield headline(results["runs"])
    for run in results["runs"]:
        yield from run_sections(run)


def machine_text(about):
    host = f"{about['processor']}, " if about.get("gpu") else ""
    lines = [f"{host}{about['cores']} cores, {about['memory'] / 2**30:.0f} GiB, {about['system']}."]
    for side in ("taut", "pytorch", *(name for name in OTHERS if name in about)):
        side_about = about.get(side)
        if side_about is None:
            lines.append(f"{side}: not there.")
        else:
            lines.append("; ".join(f"{key}: {value}" for key, value in side_about.items() if key != "build") + ".")
    return "\n".join(lines)


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def headline(runs):
    rows = []
    for run in runs:
        sides = with_sums(run["sides"])
        ours = {precision(name) for name in sides if is_taut(name)}
        for wanted in (word for word in ("f32", "tf32", "bf16") if word in ours):
            first = run["workload"] + ("" if wanted == "f32" else f", {wanted}")
            row = [first, str(run["threads"])]
            row += [spread(best_ratios(sides, what, wanted)) for what in HEADLINES]
            row += [memory_ratio(sides), start_up_ratio(sides), share_of_floor(run)] if wanted == "f32" else [""] * 3
            rows.append(row)
    return table(["workload", "threads", *HEADLINES.values(), "memory", "start-up", "share of floor"], rows)


def with_sums(sides):
    """Adds the sum of an epoch and an evaluation, round by round."""
    sums = {}
    for name, result in sides.items():
        sums[name] = dict(result)
        passes = {key: result[key] for key in ("epoch", "evaluation") if result.get(key)}
        sums[name] |= {"passes": passes} | {key: seconds(value) for key, value in passes.items()}
        if len(passes) == 2:
            sums[name]["epoch + evaluation"] = [a + b for a, b in zip(*map(seconds, passes.values()))]
    return sums


def seconds(passes):
    return [one["seconds"] for one in passes]


def spread(values):
    if not values:
        return ""
    low, middle, high = quartiles(values)
    return f"{middle:.2f}x [{low:.2f}, {high:.2f}]"


def memory_ratio(sides):
    rung = fastest_rung(sides, "step")
    ours, theirs = sides["taut"].get("memory"), sides.get(rung, {}).get("memory")
    if not ours or not theirs:
        return ""
    return f"{ours['peak'] / theirs['peak']:.2f}x"


def start_up_ratio(sides):
    ours, theirs = sides["taut"].get("start_up"), sides.get("eager", {}).get("start_up")
    return f"{median(ours) / median(theirs):.2f}x" if ours and theirs else ""


def share_of_floor(run):
    profile, step = run.get("profile"), run["sides"]["taut"].get("step")
    return f"{100 * profile['floor'] / median(step):.0f} %" if profile and step else ""


def run_sections(run):
    sides = with_sums(run["sides"])
    yield f"## {title(run['workload'], run['threads'], run.get('device', 'cpu'))}"
    header = [
        "",
        "step, ms",
        "faster",
        "batch 1, ms",
        "faster",
        "batch 256, ms",
        "faster",
        "start-up, s",
        "peak, MB",
        "loss apart",
        "logits apart",
    ]
    yield table(header, [rung_row(name, sides) for name in sides])
    yield passes_table(sides)
    yield parity_text(run)
    if run.get("profile"):
        yield f"Profile of {run['profile']['steps']:.0f} steps of Taut:\n\n```\n" + run["profile"][
            "report"
        ].rstrip() + "\n```"


def passes_table(sides):
    """Training and evaluation with the real data, samples a second."""
    rows = []
    for name, result in sides.items():
        if "epoch + evaluation" not in result:
            continue
        epoch, evaluation = (
            median([p["samples"] / p["seconds"] for p in result["passes"][key]]) for key in ("epoch", "evaluation")
        )
        last = result["passes"]["epoch"][-1]
        rows.append([name, f"{last['samples']:.0f}", f"{epoch:.0f}", f"{evaluation:.0f}", f"{last['loss']:.4f}"])
    if not rows:
        return "Nothing was measured on the real data."
    return table(["real data", "images", "training, images/s", "evaluation, images/s", "last training loss"], rows)


def rung_row(name, sides):
    result = sides[name]
    row = [f"**{name}**" if is_taut(name) else name]
    for what in ("step", "infer 1", "infer 256"):
        times = result.get(what)
        row.append(f"{1e3 * median(times):.3g}" if times else "")
        row.append("" if name == "taut" else spread(ratios(sides, what, name)))
    row.append(f"{median(result['start_up']):.2f}" if result.get("start_up") else "")
    row.append(f"{result['memory']['peak'] / 1e6:.0f}" if result.get("memory") else "")
    ours = sides["taut"].get("losses")
    loss = difference(result["losses"], ours) if ours and result.get("losses") and name != "taut" else None
    row.append(f"{loss['largest']:.1e}" if loss else "")
    logits = [result[key] for key in ("logits 1", "logits 256") if key in result]
    row.append(f"{max(logits):.1e}" if logits and name != "taut" else "")
    return row


def parity_text(run):
    lines = [f"{name} failed: {result['error']}." for name, result in run["sides"].items() if "error" in result]
    reference = run["sides"].get("eager", {}).get("losses")
    apart = {
        name: difference(result["losses"], reference)["step_apart"]
        for name, result in run["sides"].items()
        if reference and result.get("losses") and precision(name) == "f32"
    }
    for step in sorted({step for step in apart.values() if step}):
        names = ", ".join(name for name, first in apart.items() if first == step)
        lines.append(
            f"Losses more than a thousandth from those of eager PyTorch for the first time at step {step}: {names}."
        )
    together = ", ".join(name for name, step in apart.items() if step is None and name != "eager")
    if together:
        lines.append(f"Never in {len(reference)} steps: {together}.")
    double = run.get("double")
    if double:
        lines.append(
            f"In double, {double['steps']} steps on batches of {double['batch']}: losses within "
            f"{double['largest']:.1e} of each other."
        )
    lines.append(f"{run['pairs']} pairs, measured on {run['date']} at commit {run['commit']}.")
    return "\n".join(lines)
