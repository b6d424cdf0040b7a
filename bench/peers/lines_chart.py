"""A line chart as one SVG file, without libraries."""

from xml.sax.saxutils import escape

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 56, 170, 36, 44
COLORS = ("#1b6ca8", "#d1495b", "#2e8b57", "#e08e1b", "#6a4c93", "#5b8e7d", "#8c564b", "#444444")


def ticks(most):
    """About six round numbers from 0 to `most`."""
    step = next(s for s in (0.5, 1, 2, 4, 5, 10, 20, 50, 100, 1000, 10000) if most / s <= 8 or s == 10000)
    return [step * i for i in range(int(most / step) + 1)]


def svg(series, title, x_name, y_name):
    """`series` maps names to {x: y}; the thin dashed line is y = x. Returns the file's text."""
    most_x = max(x for points in series.values() for x in points)
    most_y = max(max(y for points in series.values() for y in points.values()), 1.0)
    plot_width, plot_height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def at(x, y):
        return f"{LEFT + plot_width * x / most_x:.1f},{TOP + plot_height * (1 - min(y, most_y) / most_y):.1f}"

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
             f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
             f'<text x="{LEFT}" y="20" font-size="15">{escape(title)}</text>']
    for y in ticks(most_y):
        left, height = at(0, y).split(",")
        parts.append(f'<line x1="{left}" x2="{LEFT + plot_width}" y1="{height}" y2="{height}" stroke="#ddd"/>'
                     f'<text x="{LEFT - 6}" y="{float(height) + 4:.1f}" text-anchor="end">{y:g}</text>')
    for x in sorted({x for points in series.values() for x in points}):
        place = at(x, 0).split(",")[0]
        parts.append(f'<text x="{place}" y="{TOP + plot_height + 18}" text-anchor="middle">{x}</text>')
    ideal = min(most_x, most_y)
    parts.append(f'<polyline points="{at(0, 0)} {at(ideal, ideal)}" fill="none" stroke="#999" stroke-dasharray="4 4"/>')
    for i, (name, points) in enumerate(series.items()):
        color = COLORS[i % len(COLORS)]
        line = " ".join(at(x, points[x]) for x in sorted(points))
        parts.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts.append(f'<text x="{LEFT + plot_width + 12}" y="{TOP + 14 + 18 * i}" fill="{color}">{escape(name)}</text>')
    parts.append(f'<text x="{LEFT + plot_width / 2}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x_name)}</text>')
    parts.append(f'<text transform="translate(14 {TOP + plot_height / 2}) rotate(-90)" text-anchor="middle">'
                 f'{escape(y_name)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
