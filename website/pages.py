"""A hook of MkDocs: pages that do not lie in `docs/`, links, and the version.

The site shows CONTRIBUTING.md, CHANGELOG.md and the notebooks, with their stored
outputs and an overview, together with its own pages. On GitHub, links between all these
lead to files of the repository. On the site they lead to pages, and to the repository
for other files.
"""

import pathlib
import posixpath
import re

import nbconvert
from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).parent.parent
# The pages of files that do not lie in docs/.
PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"} | {
    f"notebooks/{path.name}": f"notebooks/{path.stem}.md"
    for path in sorted(ROOT.glob("notebooks/*.ipynb"))
}
SOURCES = {page: source for source, page in PAGES.items()}
LINK = re.compile(r"(\]\()(?!https?:|#)([^)\s#]+)(#[^)\s]*)?(?=\))")
# What pandas adds to tables, whose style the theme has.
STYLE = re.compile(
    r'<style scoped>.*?</style>| border="1" class="dataframe"', re.DOTALL
)
CODE_OR_TABLE = re.compile(r"^```.*?^```|^\|.*?$", re.MULTILINE | re.DOTALL)
PARAGRAPH = re.compile(r"^[\w`\[][^\n]{40,}(?:\n[^\n]+)*", re.MULTILINE)


def on_config(config, **_):
    """The version, which `website/theme` shows in the header."""
    source = (ROOT / "tfrankmetrics/__init__.py").read_text(encoding="utf-8")
    config.extra["release"] = re.search(r'^__version__ = "(.+)"', source, re.M)[1]
    return config


def on_files(files, config, **_):
    """Adds the pages."""
    cards = []
    for source, page in PAGES.items():
        path = ROOT / source
        if path.suffix == ".ipynb":
            text, images = _notebook(path)
            cards.append(_card(text, f"{path.stem}.md", next(iter(images))))
            for name, content in images.items():
                uri = f"notebooks/{name}"
                files.append(File.generated(config, uri, content=content))
        else:
            text = path.read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    cards = "\n".join(cards)
    text = f'# Notebooks\n\n<div class="grid cards" markdown>\n\n{cards}\n</div>\n'
    files.append(File.generated(config, "notebooks/index.md", content=text))
    return files


def _notebook(path):
    """A notebook as Markdown, and its images by their names."""
    folder = {"output_files_dir": path.stem, "unique_key": "output"}
    exporter = nbconvert.MarkdownExporter()
    text, resources = exporter.from_filename(str(path), resources=folder)
    text = STYLE.sub("", text).replace("![png]", "![Output of the cell]")
    return text, resources["outputs"]


def _card(text, page, image):
    """A notebook on the overview: its title, its first sentence and a picture."""
    title = re.search("^# (.+)", text, re.MULTILINE)[1]
    sentence = _first_sentence(text)
    return f"""*   **[{title}]({page})**

    {sentence}

    ![]({image})
"""


def on_page_markdown(markdown, page, config, **_):
    """Rewrites the links of a page, and describes it by its first sentence."""
    uri = page.file.src_uri
    source = SOURCES.get(uri, f"docs/{uri}")

    def of_site(link):
        opening, target, anchor = link.groups(default="")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if path in PAGES or path.startswith("docs/"):
            to = PAGES.get(path, path.removeprefix("docs/"))
            to = posixpath.relpath(to, posixpath.dirname(uri) or ".")
            return f"{opening}{to}{anchor}"
        if not (ROOT / path).exists():
            return link[0]  # an image of a notebook, or a mistake that MkDocs reports
        kind = "tree" if (ROOT / path).is_dir() else "blob"
        branch = config.edit_uri.split("/")[1]
        return f"{opening}{config.repo_url}/{kind}/{branch}/{path}{anchor}"

    markdown = LINK.sub(of_site, markdown)
    if "description" not in page.meta:
        page.meta["description"] = _first_sentence(markdown)
    return markdown


def on_page_content(html, config, **_):
    """Completes the links to the source, which `website/templates` writes."""
    branch = config.edit_uri.split("/")[1]
    return html.replace('"repository:', f'"{config.repo_url}/blob/{branch}/')


def _first_sentence(markdown):
    """The first sentence, without markup, as the value of an attribute, or ""."""
    paragraph = PARAGRAPH.search(CODE_OR_TABLE.sub("", markdown))
    if not paragraph:
        return ""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", paragraph[0])
    plain = " ".join(re.sub(r"[`*]", "", plain).split()).replace('"', "'")
    sentence = re.split(r"(?<=[.:])\s", plain)[0]
    return f"{sentence.rstrip('.:')}."
