"""Numbers and escaping: what a reader sees is what was meant."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedbed.reporting.formatting import (
    Markdown,
    general,
    interval,
    latex,
    listed,
    markdown,
    number,
    one_line,
    p_equals,
    p_value,
    signed,
    spread,
)


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [(83.14, 1, "83.1"), (-0.04, 1, "0.0"), (-0.0, 2, "0.00"), (-48.05, 0, "−48"), (1e6, 0, "1000000")],
)
def test_number(value, decimals, text):
    assert number(value, decimals) == text


def test_signed_number_has_no_sign_where_it_rounds_to_zero():
    assert [signed(v, 1) for v in (2.0, -2.0, 0.01, -0.01)] == ["+2.0", "−2.0", "0.0", "0.0"]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_missing_number_cannot_be_printed(value):
    with pytest.raises(ValueError, match="reason"):
        number(value)


def test_a_spread_that_is_not_zero_is_not_shown_as_zero():
    assert spread(0.004, 1) == "<\u00a00.1"
    assert spread(0.0, 1) == "0.0"


def test_p_values_are_never_zero():
    assert p_value(0.0) == "<\u00a00.001"
    assert p_value(0.0078125) == "0.008"
    assert p_equals(0.00099) == "p\u00a0<\u00a00.001"
    assert p_equals(1.0) == "p\u00a0=\u00a01.000"


def test_interval_list_and_general_numbers():
    assert interval(-1.25, 2.0, 1) == "[−1.2,\u00a02.0]"
    assert [listed(list(items)) for items in ("", "a", "ab", "abc")] == ["", "a", "a and b", "a, b and c"]
    assert general(50_000) == "50\u202f000"
    assert general(0.0003) == "0.0003"


def test_escaping_marks_every_sign_and_keeps_markdown_apart():
    assert markdown(r"_%$#&<>\{}~^|*[]`@") == r"\_\%\$\#\&\<\>\\\{\}\~\^\|\*\[\]\`\@"
    assert isinstance(markdown("x"), Markdown)


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("1. one", "1\\. one"),
        ("- one", "\\- one"),
        ("83.1 steps", "83.1 steps"),
        ("rule-based", "rule-based"),
        ("(1) one", "\\(1) one"),
        (": one", "\\: one"),
        ("two\nlines\t here", "two lines here"),
        ("bell\x07", "bell"),
    ],
)
def test_what_would_begin_a_block_is_escaped(text, escaped):
    assert markdown(text) == escaped


@given(st.text())
def test_escaped_text_is_one_line_that_holds_every_character(text):
    escaped = markdown(text)
    assert "\n" not in escaped
    kept = iter(escaped)
    assert all(character in kept for character in one_line(text))


def test_latex_escapes_each_sign():
    assert latex(r"a_b % $ # & \ { } ~ ^") == (
        r"a\_b \% \$ \# \& \textbackslash{} \{ \} \textasciitilde{} \textasciicircum{}"
    )
