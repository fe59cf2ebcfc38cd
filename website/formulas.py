"""A hook of MkDocs: formulas in TeX become MathML while the site is built.

A page has formulas as GitHub renders them: in a block of code with the language `math`,
or between dollars in a sentence. `pymdownx.arithmatex` finds and marks them. Browsers
show MathML without a script or a font from elsewhere.
"""

import html
import re

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

MARKED = re.compile(
    r'<(?P<tag>div|span) class="arithmatex">\\[(\[](?P<tex>.*?)\\[)\]]</(?P=tag)>',
    re.DOTALL,
)


def on_page_content(content, page, **_):
    """Replaces the formulas of a page."""

    def with_mathml(marked):
        display = "block" if marked["tag"] == "div" else "inline"
        tex = html.unescape(marked["tex"]).strip()
        mathml = convert(tex, display=display)
        # As an operator it would stand apart from the bracket that follows.
        mathml = mathml.replace("<mo>min</mo>", "<mi>min</mi>")
        # A command that the converter does not know stays in its output.
        if "\\" in mathml:
            raise PluginError(f"{page.file.src_uri}: no MathML for the formula {tex}")
        if display == "inline":
            return mathml
        return f'<div class="formula" data-search-exclude>{mathml}</div>'

    return MARKED.sub(with_mathml, content)
