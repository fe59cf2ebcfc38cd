"""Draws the diagrams overview.svg, choosing.svg and padding.svg of docs/images.

python docs/images/make_diagrams.py

The background is transparent. Text stands in boxes of its own color, or has a color of
middle lightness, so that it is legible on light and on dark pages. A unit is a pixel of
a screen of 400 pixels, and other screens enlarge the picture.
"""

import pathlib
from html import escape

HERE = pathlib.Path(__file__).parent
INK, LINE = "#6c727c", "#8a919c"
BLUE, GREEN, AMBER, GREY = "#dfe7fb", "#d5efdf", "#fbe3c6", "#e6e8ec"
EDGES = {BLUE: "#3f7fd0", GREEN: "#2f9e6e", AMBER: "#d9822b", GREY: "#8a919c"}
DARK = "#1f2937"


class Picture:
    """Collects the parts of an SVG."""

    def __init__(self, width, height, title):
        """The size in units, and what screen readers say."""
        self.parts = [
            '<svg xmlns="http://www.w3.org/2000/svg" '
            f'viewBox="0 0 {width} {height}" width="{width * 1.4:.0f}" '
            f'height="{height * 1.4:.0f}" font-family="Helvetica, Arial, sans-serif" '
            'font-size="13" role="img" aria-labelledby="title">',
            f'<title id="title">{escape(title)}</title>',
            '<defs><marker id="a" markerWidth="8" markerHeight="8" refX="7" refY="4" '
            f'orient="auto"><path d="M0 0L8 4L0 8z" fill="{LINE}"/></marker></defs>',
        ]

    def text(self, x, y, words, color=INK, anchor="middle", **style):
        """A line of text whose middle has the height y."""
        style = "".join(f' {key}="{value}"' for key, value in style.items())
        self.parts.append(
            f'<text x="{x}" y="{y + 4.5}" text-anchor="{anchor}" fill="{color}"{style}>'
            f"{escape(words)}</text>"
        )

    def box(self, x, y, width, height, lines=(), fill=BLUE, dashed=False, bold=False):
        """A box with lines of text in its middle."""
        dashes = ' stroke-dasharray="4 3"' if dashed else ""
        self.parts.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" '
            f'fill="{fill}" stroke="{EDGES[fill]}"{dashes}/>'
        )
        style = {"font-weight": "bold"} if bold else {}
        for number, line in enumerate(lines):
            place = y + height / 2 + 16 * (number - (len(lines) - 1) / 2)
            self.text(x + width / 2, place, line, DARK, **style)

    def arrow(self, path):
        """A line with a head at its end."""
        self.parts.append(
            f'<path d="{path}" fill="none" stroke="{LINE}" stroke-width="1.5" '
            'marker-end="url(#a)"/>'
        )

    def save(self, name):
        """Writes the file."""
        text = "\n".join([*self.parts, "</svg>"]) + "\n"
        (HERE / name).write_text(text, encoding="utf-8")


def overview():
    """From the data to one ranking per query, and from it to what you get."""
    inputs = ["Keras models", "arrays, ids", "tables, runs", "embeddings", "TFX, Beam"]
    outputs = ["metrics", "conventions", "comparisons", "explanations"]
    picture = Picture(
        400,
        222,
        "Keras models, arrays, tables, embeddings and pipelines lead to one ranking "
        "per query, from which tfrankmetrics computes metrics, conventions of other "
        "tools, comparisons and explanations",
    )
    middle = 111
    for number, words in enumerate(inputs):
        y = 8 + 43 * number
        picture.box(2, y, 106, 34, [words], bold=True)
        picture.arrow(f"M108 {y + 17}C124 {y + 17} 120 {middle} 138 {middle}")
    picture.text(200, 17, "one ranking", **{"font-weight": "bold"})
    picture.text(200, 33, "per query", **{"font-weight": "bold"})
    ranks = [("1", GREEN), ("2-4", GREY), ("2-4", GREEN), ("2-4", GREY), ("5", GREY)]
    picture.box(142, 74, 116, 84, fill=AMBER, dashed=True)
    for number, (rank, fill) in enumerate(ranks):
        words = "relevant" if fill == GREEN else ""
        y = 48 + 27 * number + (3 if number else 0) + (3 if number == 4 else 0)
        picture.box(148, y, 104, 23, fill=fill)
        picture.text(156, y + 11.5, rank, DARK, "start")
        picture.text(246, y + 11.5, words, DARK, "end")
    picture.text(200, 199, "ties: the mean over", **{"font-size": 12})
    picture.text(200, 213, "all their orders", **{"font-size": 12})
    for number, words in enumerate(outputs):
        y = 24 + 46 * number
        picture.arrow(f"M258 {middle}C276 {middle} 272 {y + 18} 288 {y + 18}")
        picture.box(291, y, 107, 36, [words], fill=GREEN, bold=True)
    picture.save("overview.svg")


def choosing():
    """The questions of "Which metric?" in docs/metrics/index.md, in their order."""
    questions = [
        (["Is only one item shown", "at a time?"], ["auc, or gauc", "per user"]),
        (["Does a second model", "rerank the results?"], ["recall@k"]),
        (["May a query have", "several meanings?"], ["alpha_dcg@k"]),
        (["Is one held-out item", "relevant?"], ["hit_rate@k", "and ndcg@k"]),
        (["Does the user want", "every relevant item?"], ["map", "or r_precision"]),
        (
            ["Does the user stop", "at the first good item?"],
            ["mrr@k; err@k", "if graded"],
        ),
        (
            ["Are the k items seen", "at once, in no order?"],
            ["precision@k", "or recall@k"],
        ),
    ]
    step = 62
    picture = Picture(
        400,
        step * len(questions) + 50,
        "A decision tree: questions about what the user does with the list, and the "
        "metric for each",
    )
    for number, (question, metric) in enumerate(questions):
        y = 4 + step * number
        picture.box(4, y, 200, 44, question)
        picture.arrow(f"M204 {y + 22}H260")
        picture.text(230, y + 13, "yes")
        picture.box(264, y, 132, 44, metric, fill=GREEN, bold=True)
        picture.arrow(f"M104 {y + 44}V{y + step - 3}")
        if number < len(questions) - 1:
            picture.text(112, y + 53, "no", anchor="start", **{"font-size": 12})
    y = 4 + step * len(questions)
    picture.text(112, y - 9, "no", anchor="start", **{"font-size": 12})
    picture.box(4, y, 200, 40, ["The user reads", "from the top"])
    picture.arrow(f"M204 {y + 20}H260")
    picture.box(264, y, 132, 40, ["ndcg@k"], fill=GREEN, bold=True)
    picture.save("choosing.svg")


def padding():
    """Three lists, their padded arrays, and the ranks of the items that exist."""
    lists = {
        "tea": ([1, 0, 2], [0.3, 0.9, 0.5]),
        "milk": ([0, 1], [0.2, 0.7]),
        "salt": ([1], [0.4]),
    }
    picture = Picture(
        400,
        190,
        "Three lists of three, two and one items become arrays of three columns, in "
        "which a label of -1 marks padding. Only the items that exist have ranks.",
    )
    side, left = 34, {"lists": 42, "arrays": 168, "ranks": 294}
    for name, x in left.items():
        picture.text(x + 1.5 * side, 12, name, **{"font-weight": "bold"})
    for row, (query, (labels, scores)) in enumerate(lists.items()):
        y = 28 + 42 * row
        picture.text(36, y + 17, query, anchor="end")
        descending = sorted(scores, reverse=True)
        for column in range(3):
            exists = column < len(labels)
            cells = {name: x + side * column for name, x in left.items()}
            size = (side - 3, side)
            if exists:
                label, score = labels[column], scores[column]
                for name in ["lists", "arrays"]:
                    picture.box(cells[name], y, *size, [str(label), str(score)])
                rank = descending.index(score) + 1
                picture.box(cells["ranks"], y, *size, [str(rank)], GREEN, bold=True)
            else:
                style = {"fill": GREY, "dashed": True}
                picture.box(cells["arrays"], y, *size, ["-1", "9.9"], **style)
                picture.box(cells["ranks"], y, *size, [""], **style)
    for x in [145, 271]:
        picture.arrow(f"M{x} 87H{x + 19}")
    picture.text(200, 163, "A cell holds the label and, below it, the score.")
    picture.text(200, 180, "A label of -1 is padding, whatever its score.")
    picture.save("padding.svg")


if __name__ == "__main__":
    overview()
    choosing()
    padding()
