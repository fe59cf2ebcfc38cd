"""A hook of MkDocs: code, outputs and tables on a narrow screen.

Code in a sentence stays on one line if it is short. An output that is text breaks. Wide
outputs with columns and wide tables of numbers have small letters. A wide table with
code shows the cells of a row one below the other. `docs/stylesheets/extra.css` has the
styles of the classes and of `data-phone`.
"""

import html
import re

SHORT = 30  # characters, fewer than a phone shows in a line
WIDTH = 38  # characters of an output that a phone shows in a line
ROW_WIDTH = 42  # characters of code that it shows in a row of a table
MARGIN = 3  # characters, as wide as the space around the content of a cell
INLINE = re.compile(r"<code>([^<\n]+)</code>")
OUTPUT = re.compile(r'(<div class="language-text highlight)(">.*?</div>)', re.DOTALL)
COLUMNS = re.compile(r"[^\s<>] {2,}\S|^\|", re.MULTILINE)
TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
HEADING = re.compile(r"<th\b[^>]*>(.*?)</th>", re.DOTALL)
ROW = re.compile(r"<tr>.*?</tr>", re.DOTALL)
CELL = re.compile(r"<td\b([^>]*)>(.*?)</td>", re.DOTALL)
CODE = re.compile(r"<code\b[^>]*>(.*?)</code>", re.DOTALL)
TAG = re.compile(r"<[^>]+>")


def on_page_content(content, **_):
    """Marks short code, outputs and wide tables."""
    content = INLINE.sub(_with_length, content)
    content = OUTPUT.sub(_with_kind, content)
    return TABLE.sub(_marked_if_wide, content)


def _with_length(code):
    is_short = len(html.unescape(code[1])) <= SHORT
    return f'<code class="short">{code[1]}</code>' if is_short else code[0]


def _with_kind(output):
    opening, rest = output.groups()
    if not COLUMNS.search(rest):
        return f"{opening} sentences{rest}"
    is_wide = max(map(len, _text(rest).splitlines())) > WIDTH
    return f"{opening} wide{rest}" if is_wide else output[0]


def _marked_if_wide(table):
    """Marks a wide table. With code, each cell gets the name of its column."""
    names = [_text(name).rstrip("=") for name in HEADING.findall(table[0])]
    rows = [[cell[2] for cell in CELL.finditer(row)] for row in ROW.findall(table[0])]
    columns = list(zip(*filter(None, rows), strict=True))
    if sum(map(_width, columns)) <= ROW_WIDTH:
        return table[0]
    if "<code" not in table[0]:
        return table[0].replace("<table>", '<table data-phone="dense">')
    stacked = ROW.sub(lambda row: _with_names(row[0], names), table[0])
    return stacked.replace("<table>", '<table data-phone="stacked">')


def _width(cells):
    """The width of the longest code or word of a column."""
    code = [_text(each) for cell in cells for each in CODE.findall(cell)]
    words = [word for cell in cells for word in _text(CODE.sub("", cell)).split()]
    return max(map(len, [*code, *words]), default=0) + MARGIN


def _with_names(row, names):
    names = iter(names)

    def with_name(cell):
        name = html.escape(next(names))
        return f'<td{cell[1]} data-column="{name}">{cell[2]}</td>'

    return CELL.sub(with_name, row)


def _text(content):
    return html.unescape(TAG.sub("", content))
