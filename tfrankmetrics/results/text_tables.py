"""Tables of results, as text, HTML, Markdown and LaTeX."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "`": r"\textasciigrave{}",
    # In LaTeX's default encoding, the text font has other signs in their places.
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
}
LATEX |= {character: f"\\{character}" for character in "&%$#_{}"}
# Hyphens and quotes that LaTeX would join into one sign.
LIGATURE = r"-(?=-)|'(?=')"
# LaTeX reads these at the start of a row as an argument of the \\ above it.
ARGUMENT = r"\s*[\[*]"
# What Markdown of GitHub reads as more than text. A _ within a word is only text, and
# so are a * or a < between spaces, a & without an entity, and brackets of intervals.
MARKDOWN = r"[\\`~|$]|\*(?=\S)|(?<=\S)\*|(?<![^\W_])_|_(?![^\W_])"
MARKDOWN += r"|(?<=\])\(|:(?=//)|(?<=www)\."  # links
TAG_OR_ENTITY = r"<(?=[A-Za-z/!?])|&(?=[#\w]+;)"
# At the start of a line: a heading, a quotation or a list.
BLOCK = r"^(\s*\d*)([#>*+.)-])"
# A line of a table must stay one line.
BREAKS = r"[\x00-\x1f\x7f\x85\u2028\u2029]+"

MOST_ROWS = 60  # of a table that is shown in whole
ROWS_SHOWN = 10  # of a longer one, at each end


class Cell(NamedTuple):
    """A cell of a table."""

    text: str
    is_best: bool = False
    marks: str = ""  # letters of the models that it is significantly better than


class Table(NamedTuple):
    """Rows of cells below a header. The first columns name the row."""

    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    num_labels: int
    notes: Sequence[str] = ()  # lines below the table

    def abridged(self) -> Table:
        """The first and the last rows of a long table, to be shown."""
        number = len(self.rows)
        if number <= MOST_ROWS:
            return self
        gap = [Cell("...") for _ in self.header]
        rows = [*self.rows[:ROWS_SHOWN], gap, *self.rows[-ROWS_SHOWN:]]
        note = f"{2 * ROWS_SHOWN} of {number:,} rows. `to_markdown` includes all."
        return self._replace(rows=rows, notes=[note, *self.notes])

    def _texts(
        self, escaped: Callable[[str], str], best: str, marked: str
    ) -> list[list[str]]:
        """The texts of the header and of each row, in some format.

        `best` contains {} in the place of the text of a best cell, and `marked` in the
        place of marks.
        """

        def text(cell: Cell) -> str:
            content = escaped(cell.text)
            content = best.format(content) if cell.is_best else content
            return content + marked.format(cell.marks) * bool(cell.marks)

        return [
            [escaped(name) for name in self.header],
            *([text(cell) for cell in row] for row in self.rows),
        ]

    def _aligned(self, left: str, right: str) -> list[str]:
        """The alignment of each column: `left` if it names the row."""
        return [left if i < self.num_labels else right for i in range(len(self.header))]

    def to_text(self) -> str:
        """Columns of text: the best values have a star, their marks follow."""
        rows = self._texts(one_line, "{}*", " {}")
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        sides = self._aligned("<", ">")
        lines = [
            "  ".join(
                f"{cell:{side}{width}}"
                for cell, side, width in zip(row, sides, widths, strict=True)
            ).rstrip()
            for row in rows
        ]
        return "\n".join([*lines, *map(one_line, self.notes)])

    def to_html(self) -> str:
        """An HTML table; the best values are bold, marks are superscripts."""
        sides = self._aligned("left", "right")
        # MathJax, in notebooks, would read what is between two $ as a formula.
        lines = ['<div class="tex2jax_ignore mathjax_ignore">', "<table>"]
        rows = self._texts(html.escape, "<b>{}</b>", "<sup>{}</sup>")
        for tag, row in zip(["th", *["td"] * len(self.rows)], rows, strict=True):
            cells = [
                f'<{tag} style="text-align: {side}">{cell}</{tag}>'
                for side, cell in zip(sides, row, strict=True)
            ]
            lines.append(f"<tr>{''.join(cells)}</tr>")
        notes = [f"<p>{html.escape(note)}</p>" for note in self.notes]
        return "\n".join([*lines, "</table>", *notes, "</div>"])

    def to_markdown(self) -> str:
        """A Markdown table; the best values are bold, marks are superscripts."""
        header, *rows = self._texts(in_markdown, "**{}**", "<sup>{}</sup>")
        rows = [header, self._aligned("---", "---:"), *rows]
        lines = [f"| {' | '.join(row)} |" for row in rows]
        notes = [re.sub(BLOCK, r"\1\\\2", in_markdown(note)) for note in self.notes]
        return "\n".join([*lines, *([""] if notes else []), *notes])

    def to_latex(self) -> str:
        """A LaTeX tabular; the best values are bold, marks are superscripts."""
        texts = self._texts(in_latex, r"\textbf{{{}}}", "$^{{{}}}$")
        header, *rows = [
            "{}" * bool(re.match(ARGUMENT, row[0])) + f"{' & '.join(row)} \\\\"
            for row in texts
        ]
        begin = rf"\begin{{tabular}}{{{''.join(self._aligned('l', 'r'))}}}"
        lines = [begin, r"\hline", header, r"\hline", *rows]
        lines += [r"\hline", r"\end{tabular}"]
        if self.notes:
            lines += ["", *map(in_latex, self.notes)]  # a paragraph below the table
        return "\n".join(lines)


def one_line(text: str) -> str:
    """The text with a space for each line break."""
    return re.sub(BREAKS, " ", text)


def in_markdown(text: str) -> str:
    """The text in one line of Markdown, without HTML."""
    text = re.sub(MARKDOWN, r"\\\g<0>", one_line(text))
    return re.sub(TAG_OR_ENTITY, lambda match: html.escape(match[0]), text)


def in_latex(text: str) -> str:
    """The text in one line of LaTeX."""
    text = "".join(LATEX.get(character, character) for character in one_line(text))
    return re.sub(LIGATURE, r"\g<0>{}", text)


def label_of_all(keys: Iterable[Sequence[Any]]) -> str:
    """The label of the row for all queries: no slice has the same one."""
    taken = {str(value) for key in keys for value in key}
    return "all" if "all" not in taken else "(all)"


class ShownAsTable:
    """A result that prints as a table, and as HTML in a notebook."""

    def _table(self) -> Table:
        raise NotImplementedError

    def __repr__(self) -> str:
        return self._table().abridged().to_text()

    def _repr_html_(self) -> str:
        return self._table().abridged().to_html()

    def to_markdown(self) -> str:
        """The table in Markdown."""
        return self._table().to_markdown()

    def to_latex(self) -> str:
        """The table as a LaTeX tabular."""
        return self._table().to_latex()
