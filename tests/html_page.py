"""Parses an HTML page, so that tests can ask what is in it."""

from __future__ import annotations

from html.parser import HTMLParser

EMPTY = {"br", "hr", "link", "meta"}


class Page(HTMLParser):
    """What a page consists of; fails where an element is not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._see(tag, attrs)
        if tag not in EMPTY:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._see(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1:] != ["style"]:
            self.words += data.split()

    def _see(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.add(str(value))
            if name in ("href", "src", "xlink:href", "data", "action"):
                self.links.append(str(value))

    @property
    def text(self) -> str:
        return " ".join(self.words)
