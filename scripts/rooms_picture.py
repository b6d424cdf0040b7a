"""Draws rooms as an SVG picture: users above what they use, edges that other edges imply left out. Called by rooms.py.

The layout is the usual one for layered graphs: a row for each level, points where long edges pass through rows, rows sorted
by the mean place of their neighbours, then places moved towards these means. Nothing depends on chance or on the machine.
"""

BOX_HEIGHT = 26
ROW = 64
GAP = 14
THREAD = 6  # width of an edge that passes through a row
MARGIN = 12
STYLE = """
text { font: 13px system-ui, sans-serif; text-anchor: middle; fill: #1f2328 }
rect { fill: #ddebfa; stroke: #4b7bb5 }
rect.top { fill: #fbe7c6; stroke: #b5812f }
path { fill: none; stroke: #57606a; stroke-width: 1.1; opacity: .75 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  rect { fill: #1d3450; stroke: #6ea0d8 }
  rect.top { fill: #4a3818; stroke: #d9a653 }
  path { stroke: #9da7b3 }
}
"""


def reduce(uses):
    """Leaves out each edge whose end can be reached by another way."""
    reach = {}

    def reached(name):
        if name not in reach:
            reach[name] = set().union(*({n} | reached(n) for n in uses[name]))
        return reach[name]

    return {name: {n for n in used if not any(n in reached(other) for other in used - {n})} for name, used in uses.items()}


def levels(uses):
    """Returns each room's level: 0 if it uses nothing, else one above the highest room that it uses."""
    result = {}

    def level(name):
        if name not in result:
            result[name] = 1 + max((level(n) for n in uses[name]), default=-1)
        return result[name]

    for name in uses:
        level(name)
    return result


def threads(uses, level):
    """Returns the rows from the bottom, with points for long edges, and the edges between neighbouring rows."""
    rows = [[] for _ in range(max(level.values()) + 1)]
    for name in sorted(uses):
        rows[level[name]].append(name)
    edges = []
    ways = []
    for name in sorted(uses):
        for used in sorted(uses[name]):
            way = [name]
            for row in range(level[name] - 1, level[used], -1):
                way.append((name, used, row))
                rows[row].append(way[-1])
            way.append(used)
            edges += zip(way, way[1:])
            ways.append(way)
    return rows, edges, ways


def neighbours(edges):
    up, down = {}, {}
    for high, low in edges:
        down.setdefault(high, []).append(low)
        up.setdefault(low, []).append(high)
    return up, down


def crossings(rows, down):
    count = 0
    for low, high in zip(rows, rows[1:]):
        place = {node: i for i, node in enumerate(low)}
        ends = [place[n] for node in high for n in sorted(down.get(node, []), key=place.get)]
        count += sum(a > b for i, a in enumerate(ends) for b in ends[i + 1:])
    return count


def mean_place(node, near, place):
    """Returns the mean place of a node's neighbours; its own where it has none."""
    return sum(place[other] for other in near[node]) / len(near[node]) if near.get(node) else place[node]


def sort_rows(rows, edges):
    """Sorts each row by the mean place of its neighbours, up and down in turn; keeps the order with the fewest crossings."""
    up, down = neighbours(edges)
    best, fewest = [list(row) for row in rows], crossings(rows, down)
    for turn in range(40):
        near = up if turn % 2 else down
        order = range(len(rows) - 2, -1, -1) if turn % 2 else range(1, len(rows))
        for i in order:
            both = (rows[i + (1 if turn % 2 else -1)], rows[i])
            place = {node: j / max(1, len(row) - 1) for row in both for j, node in enumerate(row)}
            rows[i].sort(key=lambda node: mean_place(node, near, place))
        count = crossings(rows, down)
        if count < fewest:
            best, fewest = [list(row) for row in rows], count
    return best


def width(node):
    return 7.6 * len(node) + 18 if isinstance(node, str) else THREAD


def push_apart(row, wanted):
    """Places a row's nodes near the wanted places, in order and without overlap: nodes that touch move together."""
    blocks = []  # [nodes, mean wanted place of the first node, weight]
    for node in row:
        weight = 1 if isinstance(node, str) else 3
        blocks.append([[node], wanted[node], weight, 0.0])
        while len(blocks) > 1:
            before, last = blocks[-2], blocks[-1]
            step = before[3] + distance(before[0][-1], last[0][0])
            if before[1] + step <= last[1]:
                break
            mean = (before[1] * before[2] + (last[1] - step) * last[2]) / (before[2] + last[2])
            blocks[-2:] = [[before[0] + last[0], mean, before[2] + last[2], step + last[3]]]
    place = {}
    for nodes, start, _, _ in blocks:
        for before, node in zip([None] + nodes, nodes):
            start += distance(before, node) if before else 0
            place[node] = start
    return place


def distance(left, right):
    return (width(left) + width(right)) / 2 + GAP


def places(rows, edges):
    up, down = neighbours(edges)
    place = {}
    for row in rows:
        place.update(push_apart(row, {node: 0 for node in row}))
    for turn in range(60):
        near = up if turn % 2 else down
        for row in reversed(rows) if turn % 2 else rows:
            place.update(push_apart(row, {node: mean_place(node, near, place) for node in row}))
    for row in rows:  # last, the mean of both sides, so that neither end of an edge is far off
        both = {n: up.get(n, []) + down.get(n, []) for n in row}
        place.update(push_apart(row, {node: mean_place(node, both, place) for node in row}))
    return place


def draw(rooms):
    uses = {name: room.rooms() & rooms.keys() for name, room in rooms.items()}
    uses = reduce(uses)
    level = levels(uses)
    rows, edges, ways = threads(uses, level)
    rows = sort_rows(rows, edges)
    place = places(rows, edges)
    left = min(place[n] - width(n) / 2 for n in place) - MARGIN
    full = max(place[n] + width(n) / 2 for n in place) - left + MARGIN
    height = len(rows) * ROW - (ROW - BOX_HEIGHT) + 2 * MARGIN

    def x(node):
        return place[node] - left

    def top(node):
        row = level[node] if isinstance(node, str) else node[2]
        return MARGIN + (len(rows) - 1 - row) * ROW

    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {full:.0f} {height}" width="{full:.0f}" height="{height}">',
             "<title>The rooms and what they use: an edge leads down to the room that is used</title>", f"<style>{STYLE}</style>"]
    for way in ways:
        path = f"M{x(way[0]):.0f} {top(way[0]) + BOX_HEIGHT}"
        for before, node in zip(way, way[1:]):
            begin, end = top(before) + BOX_HEIGHT, top(node)
            middle = (begin + end) / 2
            path += f"C{x(before):.0f} {middle:.0f} {x(node):.0f} {middle:.0f} {x(node):.0f} {end}"
            if not isinstance(node, str):
                path += f"V{end + BOX_HEIGHT}"
        lines.append(f'<path d="{path}"/>')
    for name in sorted(rooms):
        kind = ' class="top"' if rooms[name].folder.startswith("tools") else ""
        lines.append(f'<rect{kind} x="{x(name) - width(name) / 2:.0f}" y="{top(name)}" width="{width(name):.0f}" '
                     f'height="{BOX_HEIGHT}" rx="5"/>')
        lines.append(f'<text x="{x(name):.0f}" y="{top(name) + 18}">{name}</text>')
    return "\n".join(lines + ["</svg>", ""])
