"""Decodes DATA of one record: framing, then one value per column. Whatever is wrong is a reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dbt_afterimage.sources.soliddb.framing import BlobReferenceError, Framing
from dbt_afterimage.sources.soliddb.value_columns import Column
from dbt_afterimage.sources.soliddb.values import Decode, UnsupportedTypeError, decoder_of


class Decoded(NamedTuple):
    """The decoded DATA of one record.

    Attributes:
        texts: a text per column, None where it is NULL or cannot be decoded; None as a whole where
            DATA cannot be cut into the values of its columns.
        reject_reason: of the change-event contract; None when all is well.
        reject_detail: what is wrong, in words.
    """

    texts: list[str | None] | None
    reject_reason: str | None = None
    reject_detail: str | None = None


class Layout:
    """The columns of a table at some time, ready to decode its rows."""

    def __init__(self, columns: Sequence[Column], framing: Framing, encoding: str) -> None:
        self.columns = tuple(columns)
        self.names = [column.name for column in columns]
        self._framing = framing
        self._unsupported: str | None = None
        self._decoders: list[Decode] = []
        try:
            self._decoders = [decoder_of(column, encoding) for column in columns]
        except UnsupportedTypeError as error:
            self._unsupported = str(error)

    def decode(self, data: bytes | None) -> Decoded:
        """Decode DATA of one record; never raises."""
        if self._unsupported is not None:
            return Decoded(None, "unsupported_record", self._unsupported)
        if data is None:
            return Decoded(None, "malformed_message", "DATA is NULL")
        try:
            values = list(self._framing(data, self.columns))
        except BlobReferenceError as error:
            return Decoded(None, "unsupported_record", str(error))
        # a site's own framing may raise anything, and one record must not stop the run
        except Exception as error:
            return Decoded(None, "malformed_message", str(error) or repr(error))
        if len(values) != len(self._decoders):
            counts = f"{len(values)} values for {len(self._decoders)} columns"
            return Decoded(None, "malformed_message", counts)
        return self._decode_values(values)

    def _decode_values(self, values: Sequence[bytes | None]) -> Decoded:
        """Each by itself: the others stay, the key above all, so that the record can be found."""
        texts: list[str | None] = []
        problems: list[tuple[str, str]] = []
        for column, decode, value in zip(self.columns, self._decoders, values, strict=True):
            text = None
            if value is not None:
                try:
                    text = decode(value)
                # values of a custom framing need not be bytes: then any error may be raised
                except Exception as error:
                    problems.append((column.name, str(error)))
            texts.append(text)
        if not problems:
            return Decoded(texts)
        detail = "; ".join(f"{name}: {problem}" for name, problem in problems)
        return Decoded(texts, f"uncastable_value:{problems[0][0]}", detail)
