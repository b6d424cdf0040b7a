"""Four small charts of figures against the number of workers, as one SVG file, without libraries."""

import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 340, 230
LEFT, RIGHT, TOP, BOTTOM = 46, 14, 34, 34
COLORS = {"allreduce": "#1b6ca8", "ps": "#d1495b"}
PANELS = (("first_step_s", "seconds until the first step"), ("cpu_s_per_worker", "processor seconds per worker"),
          ("threads", "threads of a worker, at most"), ("descriptors", "descriptors of a worker, at most"))


def svg(best):
    """`best` maps strategies to their runs. Returns the file's text."""
    runs = {name: [run for run in all_runs if "failed" not in run] for name, all_runs in best.items()}
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{2 * WIDTH}" height="{2 * HEIGHT + 20}" '
             f'viewBox="0 0 {2 * WIDTH} {2 * HEIGHT + 20}" font-family="sans-serif" font-size="11">',
             f'<rect width="{2 * WIDTH}" height="{2 * HEIGHT + 20}" fill="white"/>']
    for i, (key, title) in enumerate(PANELS):
        parts.append(f'<g transform="translate({i % 2 * WIDTH} {i // 2 * HEIGHT})">{panel(runs, key, title)}</g>')
    for i, name in enumerate(runs):
        parts.append(f'<text x="{LEFT + 120 * i}" y="{2 * HEIGHT + 12}" fill="{COLORS[name]}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def panel(runs, key, title):
    counts = sorted({run["workers"] for some in runs.values() for run in some})
    most = max((run[key] for some in runs.values() for run in some), default=1) or 1
    if not counts:
        return ""
    width, height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    first, span = math.log2(counts[0]), max(math.log2(counts[-1] / counts[0]), 1)

    def at(workers, value):
        return LEFT + width * (math.log2(workers) - first) / span, TOP + height * (1 - value / most)

    parts = [f'<text x="{LEFT}" y="18" font-size="13">{escape(title)}</text>']
    for share in (0, 0.25, 0.5, 0.75, 1):
        y = at(counts[0], most * share)[1]
        parts.append(f'<line x1="{LEFT}" x2="{LEFT + width}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
                     f'<text x="{LEFT - 5}" y="{y + 4:.1f}" text-anchor="end">{most * share:.3g}</text>')
    for count in counts:
        parts.append(f'<text x="{at(count, 0)[0]:.1f}" y="{TOP + height + 16}" text-anchor="middle">{count}</text>')
    for name, some in runs.items():
        points = [at(run["workers"], run[key]) for run in some]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{COLORS[name]}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{COLORS[name]}"/>' for x, y in points]
    return "".join(parts)
