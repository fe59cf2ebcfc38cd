"""A hook of MkDocs: links that leave `docs/` lead to the repository.

On GitHub, `../examples/own_metric.py` is a file beside `docs/`. The site has only the
pages of `docs/`, so there the same link becomes the file's address in the repository.
"""

import pathlib
import posixpath
import re

BRANCH = "main"
PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
LINK = re.compile(r"(\]\()(\.\./[^)\s#]+)(#[^)\s]*)?(?=\))")


def on_page_markdown(markdown, page, config, **_):
    """Rewrites the links of a page."""
    docs = pathlib.Path(config.docs_dir)
    folder = posixpath.dirname(page.file.src_uri)

    def in_repository(link):
        opening, target, anchor = link.groups(default="")
        path = posixpath.normpath(posixpath.join(docs.name, folder, target))
        file = docs.parent / path
        if path in PAGES:
            return f"{opening}{posixpath.relpath(PAGES[path], folder or '.')}{anchor}"
        if path.startswith(f"{docs.name}/") or not file.exists():
            return link[0]  # MkDocs checks these
        kind = "tree" if file.is_dir() else "blob"
        return f"{opening}{config.repo_url}/{kind}/{BRANCH}/{path}{anchor}"

    return LINK.sub(in_repository, markdown)
