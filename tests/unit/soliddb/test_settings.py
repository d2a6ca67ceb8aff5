"""Settings of solidDB tables: what they become, and what each error says."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_afterimage.settings import SettingsError, parse_settings


def settings(**own: Any) -> Any:
    return parse_settings(
        {
            "source_name": "branch",
            "name": "accounts",
            "meta": {"afterimage": own},
            "source_meta": {"afterimage": {"system": "soliddb", "framing": "engine"}},
        }
    )


def test_defaults() -> None:
    found = settings(key=["id"])
    assert found["framing"] == "engine"
    assert found["char_encoding"] == "utf-8"
    # the vendor: operations of such a transaction should not be propagated
    assert found["capture_off"] == "skip_all"
    assert found["look_back"] == 0
    assert found["change_seq_form"] == "40 or 56 hexadecimal digits"


@pytest.mark.parametrize("framing", ["length_prefixed", "engine", "decoded", "our_framing.cut"])
def test_framings(framing: str) -> None:
    assert settings(framing=framing)["framing"] == framing


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"framing": "engines"},
            r"`framing` is 'engines'\. Allowed: length_prefixed, engine, decoded, or the dotted",
        ),
        ({"char_encoding": "ebcdic"}, r"`char_encoding` is 'ebcdic'\. Allowed: an encoding that"),
        # a codec, but none of text
        ({"char_encoding": "rot13"}, r"`char_encoding` is 'rot13'\."),
        ({"capture_off": "skip"}, r"`capture_off` is 'skip'\. Allowed: skip_all, skip_deletes, k"),
        ({"look_back": 5}, r"`look_back` is 5\."),
        ({"lob_columns": ["a"]}, r"unknown setting `lob_columns`"),
        ({"base": {"kind": "frozen", "position": "12"}}, "Allowed: 40 or 56 hexadecimal digits"),
    ],
)
def test_errors_name_table_setting_and_what_is_allowed(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message) as caught:
        settings(**wrong)
    assert str(caught.value).startswith("Source table branch.accounts: ")
    assert "Fix:" in str(caught.value)
