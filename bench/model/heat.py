# SPDX-License-Identifier: Apache-2.0
"""Draws a map of efficiencies as SVG: a row for each collective and number of ranks, a column for
each size."""
from xml.sax.saxutils import escape

from model import simulate

INK, SOFT = "#1f2430", "#5c6470"
# From far from the bound (light) to near it (dark), so that the map can also be read without color.
COLORS = ("#f6efe3", "#fbdca5", "#f3b86b", "#9cc7b4", "#4d9a8c", "#1d6a6a")
LIMITS = (0.2, 0.4, 0.6, 0.8, 0.95)
CELL_WIDTH, CELL_HEIGHT, LABEL, GAP, TOP = 46, 19, 190, 22, 104
FORMS = (("of_bound", "of the larger bound"), ("of_sum", "of the sum of the bounds"))


def color_of(share):
    return COLORS[sum(share >= limit for limit in LIMITS)]


def text(x, y, words, size=11, color=INK, anchor="start", weight="normal"):
    return (f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{color}" text-anchor="{anchor}" '
            f'font-weight="{weight}">{escape(words)}</text>')


def panel(cells, rows, columns, left, machine, form):
    key, words = form
    parts = [text(left, TOP - 26, machine, 13, weight="bold"),
             text(left + 60, TOP - 26, words, 11, SOFT)]
    for at, size in enumerate(columns):
        parts.append(text(left + (at + 0.5) * CELL_WIDTH, TOP - 8,
                          simulate.size_text(size).replace("iB", "").replace(" ", ""), 10, SOFT,
                          "middle"))
    for cell in cells:
        if cell["machine"] != machine:
            continue
        y = TOP + rows[cell["collective"], cell["ranks"]]
        column = columns.index(cell["size_bytes"]) if cell["size_bytes"] else 0
        x = left + column * CELL_WIDTH
        share = min(cell[key], 1)
        parts.append(f'<rect x="{x:g}" y="{y:g}" width="{CELL_WIDTH - 2}" '
                     f'height="{CELL_HEIGHT - 2}" rx="2" fill="{color_of(share)}"><title>'
                     f'{escape(simulate.choice_text(cell))}</title></rect>')
        parts.append(text(x + CELL_WIDTH / 2 - 1, y + 12.5, f"{100 * share:.0f}", 10,
                          "#ffffff" if share >= LIMITS[3] else INK, "middle"))
    return parts


def legend(left):
    bounds = ("0", *(f"{100 * limit:.0f}" for limit in LIMITS), "100")
    parts = []
    for at, color in enumerate(COLORS):
        x = left + at * 92
        parts.append(f'<rect x="{x}" y="44" width="14" height="14" rx="2" fill="{color}"/>')
        parts.append(text(x + 20, 55, f"{bounds[at]} to {bounds[at + 1]} %", 11, SOFT))
    return parts


def draw(cells, machines, collectives):
    columns = sorted({cell["size_bytes"] for cell in cells if cell["size_bytes"]})
    rows, labels, y = {}, [], 0
    for collective in collectives:
        ranks = sorted({cell["ranks"] for cell in cells if cell["collective"] == collective})
        for at, count in enumerate(ranks):
            rows[collective, count] = y
            labels.append(text(24, TOP + y + 12.5, collective if at == 0 else "", 11,
                               weight="bold"))
            labels.append(text(LABEL - 12, TOP + y + 12.5, f"{count:,} ranks", 10, SOFT, "end"))
            y += CELL_HEIGHT
        y += 7
    width = len(columns) * CELL_WIDTH
    parts = [text(24, 28, "The best schedule against what no schedule can beat, in %", 16,
                  weight="bold"), *legend(24), *labels]
    left = LABEL
    for machine in machines:
        for form in FORMS:
            parts += panel(cells, rows, columns, left, machine, form)
            left += width + GAP
    height = TOP + y + 16
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{left}" height="{height}" '
            f'viewBox="0 0 {left} {height}" font-family="Helvetica, Arial, sans-serif">\n'
            f'<rect width="{left}" height="{height}" fill="#ffffff"/>\n' + "\n".join(parts) +
            "\n</svg>\n")
