"""A hook of MkDocs: pages of the repository that do not lie in `docs/`.

The site shows CONTRIBUTING.md and CHANGELOG.md together with its own pages. Their links
into `docs/` lead to pages of the site, and all others to the repository.
"""

import pathlib
import re

from mkdocs.structure.files import File

PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
BRANCH = "main"
LINK = re.compile(r"(\]\()(?!https?:|#)([^)\s#]+)")
CODE_OR_TABLE = re.compile(r"^```.*?^```|^\|.*?$", re.MULTILINE | re.DOTALL)
PARAGRAPH = re.compile(r"^[\w`\[][^\n]{40,}(?:\n[^\n]+)*", re.MULTILINE)


def on_files(files, config, **_):
    """Adds the pages."""
    root = pathlib.Path(config.docs_dir).parent
    docs = pathlib.Path(config.docs_dir).name

    def of_site(link):
        opening, target = link.groups()
        if target in PAGES:
            return f"{opening}{PAGES[target]}"
        if target.startswith(f"{docs}/"):
            return f"{opening}{target.removeprefix(f'{docs}/')}"
        kind = "tree" if (root / target).is_dir() else "blob"
        return f"{opening}{config.repo_url}/{kind}/{BRANCH}/{target}"

    for source, page in PAGES.items():
        text = (root / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=LINK.sub(of_site, text)))
    return files


def on_page_markdown(markdown, page, **_):
    """Describes each page to search engines by its first sentence."""
    if "description" not in page.meta:
        text = CODE_OR_TABLE.sub("", markdown)
        paragraph = PARAGRAPH.search(text)
        if paragraph:
            plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", paragraph[0])
            plain = " ".join(re.sub(r"[`*]", "", plain).split())
            plain = plain.replace('"', "'")  # the value of an attribute
            sentence = re.split(r"(?<=[.:])\s", plain)[0]
            page.meta["description"] = f"{sentence.rstrip('.:')}."
    return markdown
