"""A plot of distributions as SVG, without a library."""

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 640, 300, 50, 45, 15, 120
COLOURS = ("#1b6ca8", "#c8553d", "#4f772d", "#7b2d8b")


def text(x, y, words, anchor="middle"):
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{words}</text>'


def line(x1, y1, x2, y2):
    return f'<path d="M{x1:.0f} {y1:.0f}L{x2:.0f} {y2:.0f}" stroke="#bbb"/>'


def cumulative_plot(latencies):
    """`latencies`: nodes -> seconds from a tick to its row at the head."""
    most = 1000 * max(max(values) for values in latencies.values())
    step = next(s for s in (0.5, 1, 2, 5, 10, 20, 50, 100) if most / s <= 8)
    end = step * (int(most / step) + 1)

    def x(ms):
        return LEFT + (WIDTH - LEFT - RIGHT) * ms / end

    def y(share):
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * share

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12" fill="#333">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
    ]
    for i in range(5):
        parts += [line(LEFT, y(i / 4), WIDTH - RIGHT, y(i / 4)), text(LEFT - 8, y(i / 4) + 4, f"{25 * i} %", "end")]
    ms = 0
    while ms <= end:
        parts += [line(x(ms), y(0), x(ms), y(0) + 4), text(x(ms), y(0) + 17, f"{ms:g}")]
        ms += step
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "ms from a tick to its complete row at the head"))
    for number, (nodes, values) in enumerate(latencies.items()):
        colour = COLOURS[number % len(COLOURS)]
        values = sorted(1000 * value for value in values)
        share = [(i + 1) / len(values) for i in range(len(values))]
        points = " ".join(f"{x(v):.1f},{y(s):.1f}" for v, s in zip(values, share))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<g fill="{colour}">{text(WIDTH - RIGHT + 10, 40 + 20 * number, f"{nodes:,} nodes", "start")}</g>')
    return "\n".join([*parts, "</svg>\n"])
