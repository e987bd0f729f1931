"""The chart of a comparison: how many times faster Taut is than each rung, drawn by matplotlib."""

import subprocess
import sys
from pathlib import Path


def draw(python, path):
    """Draws `path`.svg from `path`.json with the matplotlib of a virtual environment; says so if that fails."""
    command = [str(python), "-m", "comparison.chart", str(path)]
    done = python and subprocess.run(command, cwd=Path(__file__).resolve().parents[1], capture_output=True, text=True)
    if not done or done.returncode != 0:
        print(f"no chart: {done.stderr.strip()[-300:] if done else 'there is no PyTorch environment'}")


def bars(run):
    from .statistics import quartiles, ratios

    for name in run["sides"]:
        values = ratios(run["sides"], "step", name)
        if values and not name.startswith("taut"):
            yield name, quartiles(values)


def main(path):
    import matplotlib

    from .report import file_of, read, title
    from .statistics import precision

    matplotlib.use("svg")
    from matplotlib import pyplot

    runs = read(path)["runs"]
    runs = [run for run in runs if run["threads"] == max(r["threads"] for r in runs)]
    figure, axes = pyplot.subplots(len(runs), 1, figsize=(8, 0.6 + 2 * len(runs)), sharex=True, squeeze=False)
    for axis, run in zip(axes[:, 0], runs):
        drawn = list(bars(run))[::-1]
        for position, (name, (low, middle, high)) in enumerate(drawn):
            colour = "#3b6fb6" if precision(name) == "f32" else "#b8bec8"
            axis.barh(position, middle, xerr=[[middle - low], [high - middle]], color=colour, height=0.7, capsize=2)
            axis.text(high + 0.05, position, f"{middle:.2f}", va="center", fontsize=8)
        axis.set_yticks(range(len(drawn)), [name for name, _ in drawn], fontsize=8)
        axis.axvline(1, color="black", linewidth=0.8)
        name = title(run["workload"], run["threads"], run.get("device", "cpu"))
        axis.set_title(name, fontsize=9, loc="left")
        axis.spines[["top", "right"]].set_visible(False)
    axes[-1, 0].set_xlabel(
        "PyTorch's time for a training step by Taut's: median and quartiles (grey: tf32, bf16)", fontsize=8
    )
    figure.tight_layout()
    figure.savefig(file_of(path, ".svg"), metadata={"Date": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
