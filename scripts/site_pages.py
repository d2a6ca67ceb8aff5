"""Hook of mkdocs: README, CHANGELOG and CONTRIBUTING are pages of the site, though not in docs/."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
_PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
}


def on_files(files: Any, config: Any) -> Any:
    """Add the three pages; in them `docs/x.md` is `x.md`."""
    from mkdocs.structure.files import File

    for name, page in _PAGES.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        text = re.sub(r"\]\(docs/", "](", text)
        files.append(File.generated(config, page, content=_with_site_links(text, "")))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links to the three pages lead to them."""
    depth = page.file.src_uri.count("/")
    return _with_site_links(markdown, "../" * depth)


def _with_site_links(text: str, to_docs: str) -> str:
    for name, page in _PAGES.items():
        outside = re.escape("../" * (to_docs.count("/") + 1) + name)
        text = re.sub(rf"\]\((?:{outside}|{re.escape(name)})(?=[#)])", f"]({to_docs}{page}", text)
    return text
