"""A hook of MkDocs: where lines of code may break on a narrow screen.

Code in a sentence stays on one line if it is short. An output that is text, rather than
a table with columns, breaks instead of being cut off. In cells of tables, code breaks
at punctuation, and long names before a capital. `docs/stylesheets/extra.css` has the
styles of the classes.
"""

import html
import re

SHORT = 30  # characters, fewer than a phone shows in a line
INLINE = re.compile(r"<code>([^<\n]+)</code>")
OUTPUT = re.compile(r'(<div class="language-text highlight)(">.*?</div>)', re.DOTALL)
COLUMNS = re.compile(r"[^\s<>] {2,}\S|^\|", re.MULTILINE)
CELL = re.compile(r"<td\b.*?</td>", re.DOTALL)
CODE = re.compile(r"<code\b[^>]*>.*?</code>", re.DOTALL)
PUNCTUATION = re.compile(r"(?<=[\w\])\"'][_.,(=/@])(?=[\w\"'\[])(?![^<]*>)")
LONG_NAME = re.compile(r"[A-Za-z]{18,}(?![^<]*>)")
CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def on_page_content(content, **_):
    """Marks short code and outputs, and adds places to break code in cells."""
    content = INLINE.sub(_with_length, content)
    content = OUTPUT.sub(_with_kind, content)
    return CELL.sub(lambda cell: CODE.sub(_with_breaks, cell[0]), content)


def _with_length(code):
    is_short = len(html.unescape(code[1])) <= SHORT
    return f'<code class="short">{code[1]}</code>' if is_short else code[0]


def _with_kind(output):
    opening, rest = output.groups()
    return output[0] if COLUMNS.search(rest) else f"{opening} sentences{rest}"


def _with_breaks(code):
    text = LONG_NAME.sub(lambda name: CAPITAL.sub("<wbr>", name[0]), code[0])
    return PUNCTUATION.sub("<wbr>", text)
