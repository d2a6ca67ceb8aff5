"""Charts as inline SVG, from plain numbers: stacked bars, and lines.

Colours are classes, which the page's style sheet defines for light and dark. Each chart is 360
units wide, about as many pixels as it gets on a telephone and in a column of a wide window, so its
text has the page's size on both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from markupsafe import Markup

from dbt_afterimage.cli.commands.report.units import Unit

_WIDTH, _HEIGHT = 360.0, 150.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 56.0, 8.0, 10.0, 22.0
_PLOT_WIDTH, _PLOT_HEIGHT = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
_GAP = 0.15
"""Share of a bar's place that stays empty."""


@dataclass(frozen=True)
class Values:
    """Numbers of one colour.

    Attributes:
        name: what they count, for tooltips.
        style: class of the style sheet.
        numbers: one per place on the axis; None leaves a gap.
    """

    name: str
    style: str
    numbers: Sequence[float | None]


@dataclass(frozen=True)
class Axis:
    """The horizontal axis.

    Attributes:
        names: one per place, for tooltips.
        labels: texts at the left end, in the middle and at the right end.
    """

    names: Sequence[str]
    labels: tuple[str, str, str]


def bars(title: str, axis: Axis, values: Sequence[Values], unit: Unit) -> Markup:
    """Bars at each place of the axis, on top of one another.

    Args:
        title: the chart in a sentence, for screen readers.
        values: the lowest bar first.
        unit: of the numbers.
    """
    totals = [sum(each or 0 for each in place) for place in zip(*_numbers(values), strict=True)]
    root, top = _frame(title, axis, max(totals, default=0), unit)
    width = _PLOT_WIDTH / max(1, len(axis.names))
    for index, name in enumerate(axis.names):
        below = 0.0
        for each in values:
            number = each.numbers[index] or 0
            if not number:
                continue
            bar = ElementTree.SubElement(
                root,
                "rect",
                {
                    "class": each.style,
                    "x": _text(_LEFT + (index + _GAP / 2) * width),
                    "y": _text(_y(below + number, top)),
                    "width": _text(width * (1 - _GAP)),
                    "height": _text(_y(below, top) - _y(below + number, top)),
                },
            )
            _title(bar, f"{name}: {unit.text(number)} {each.name}".rstrip())
            below += number
    return _markup(root)


def lines(title: str, axis: Axis, values: Sequence[Values], unit: Unit) -> Markup:
    """A line for each of the values; a number between two gaps is a dot.

    Args:
        title: the chart in a sentence, for screen readers.
        unit: of the numbers.
    """
    known = [max(0, each) for numbers in _numbers(values) for each in numbers if each is not None]
    root, top = _frame(title, axis, max(known, default=0), unit)
    width = _PLOT_WIDTH / max(1, len(axis.names))
    for each in values:
        line: list[str] = []
        for index, number in enumerate([*each.numbers, None]):
            if number is None:
                if len(line) > 1:
                    ElementTree.SubElement(
                        root, "polyline", {"class": each.style, "points": " ".join(line)}
                    )
                line = []
                continue
            # a lag is negative where the source's clock is ahead
            x, y = _text(_LEFT + (index + 0.5) * width), _text(_y(max(0, number), top))
            line.append(f"{x},{y}")
            dot = ElementTree.SubElement(
                root, "circle", {"class": each.style, "cx": x, "cy": y, "r": "2"}
            )
            _title(dot, f"{axis.names[index]}: {unit.text(number)} {each.name}")
    return _markup(root)


def share_bar(parts: Sequence[tuple[str, float]]) -> Markup:
    """A bar as wide as its table cell; it adds nothing to the numbers beside it.

    Args:
        parts: class and length of each part, from left to right; 1 is the whole width.
    """
    root = ElementTree.Element(
        "svg",
        {
            "class": "share",
            "viewBox": "0 0 100 8",
            "preserveAspectRatio": "none",
            "aria-hidden": "true",
        },
    )
    start = 0.0
    for style, length in parts:
        ElementTree.SubElement(
            root,
            "rect",
            {
                "class": style,
                "x": _text(start),
                "y": "0",
                "width": _text(100 * length),
                "height": "8",
            },
        )
        start += 100 * length
    return _markup(root)


def _frame(
    title: str, axis: Axis, greatest: float, unit: Unit
) -> tuple[ElementTree.Element, float]:
    """An empty chart with its grid and labels, and the number at its upper edge."""
    root = ElementTree.Element(
        "svg",
        {
            "class": "chart",
            "viewBox": f"0 0 {_WIDTH:g} {_HEIGHT:g}",
            "role": "img",
            "aria-label": title,
        },
    )
    ticks = unit.ticks(greatest)
    top = ticks[-1][0]
    for number, text in ticks:
        y = _text(_y(number, top))
        ElementTree.SubElement(
            root,
            "line",
            {"class": "grid", "x1": _text(_LEFT), "x2": _text(_WIDTH - _RIGHT), "y1": y, "y2": y},
        )
        label = ElementTree.SubElement(
            root, "text", {"x": _text(_LEFT - 6), "y": y, "dy": "0.35em", "text-anchor": "end"}
        )
        label.text = text
    places = (
        (_LEFT, "start"),
        (_LEFT + _PLOT_WIDTH / 2, "middle"),
        (_WIDTH - _RIGHT, "end"),
    )
    for (x, anchor), text in zip(places, axis.labels, strict=True):
        label = ElementTree.SubElement(
            root, "text", {"x": _text(x), "y": _text(_HEIGHT - 6), "text-anchor": anchor}
        )
        label.text = text
    return root, top


def _numbers(values: Sequence[Values]) -> list[Sequence[float | None]]:
    return [each.numbers for each in values]


def _y(number: float, top: float) -> float:
    return _TOP + _PLOT_HEIGHT * (1 - number / top)


def _title(element: ElementTree.Element, text: str) -> None:
    ElementTree.SubElement(element, "title").text = text


def _text(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")


def _markup(root: ElementTree.Element) -> Markup:
    # ElementTree escapes all text and attributes
    return Markup(ElementTree.tostring(root, encoding="unicode"))
