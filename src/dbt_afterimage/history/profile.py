"""What the chain of transforms has to know of the changes it reads, before it is built."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BatchProfile:
    """What the changes hold. Transforms for what they do not hold are left out.

    Attributes:
        forward_filled: columns that some change or prior version does not know (R9), never the key.
        has_boundary_events: whether truncates, or loads after other changes, are among them.
        truncate_scopes: columns that some truncate names in its scope.
        has_loads: whether full loads are among them.
        has_key_changes: whether some update has another key in its before image.
        has_incomplete_key_changes: whether some of those lack a column in both images.
    """

    forward_filled: tuple[str, ...] = ()
    has_boundary_events: bool = False
    truncate_scopes: tuple[str, ...] = ()
    has_loads: bool = False
    has_key_changes: bool = False
    has_incomplete_key_changes: bool = False

    @property
    def fills_along_key_changes(self) -> bool:
        """Whether a row's values have to be forward-filled from its old key to its new one."""
        return (
            bool(self.forward_filled) and self.has_key_changes and self.has_incomplete_key_changes
        )
