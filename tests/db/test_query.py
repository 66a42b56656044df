"""The named statements: loaded, qualified for a namespace, rendered; pure, but for the words that the files say."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from psycopg import AsyncConnection

import reserve
from reserve.db.claim import CLAIMS, Claim, render_claim
from reserve.db.query import Queries
from tests.db.lanes import LANES

PACKAGE = Path(reserve.__file__).parent
FILES = sorted((PACKAGE / "sql").glob("*.sql"))


def test_every_file_is_a_statement_or_a_part_of_a_claim():
    parts = {f"{claim.name}.{part}" for claim in CLAIMS for part in ("before", "after")} | {"claim"}
    names = {path.stem for path in FILES}
    assert set(Queries("one")) == (names - parts) | {claim.name for claim in CLAIMS}


def test_a_statement_carries_its_name_and_the_namespace_in_quotes():
    for name, text in Queries("my_shop").items():
        assert text.startswith(f"/* reserve:{name} */ ".encode())
        assert b'"my_shop".' in text
        assert b"{" not in text
        assert b"<" not in text.replace(b"<=", b"").replace(b"<>", b"").replace(b" < ", b"")


def test_a_quote_in_a_namespace_stays_inside_it():
    assert b'"a""b".hold' in Queries('a"b')["hold_lock"]


def test_an_unknown_statement_is_an_error_at_once():
    with pytest.raises(KeyError):
        Queries("one")["hold_destroy"]


async def test_the_server_reads_every_statement(database, conn: AsyncConnection):
    for name, text in database.queries.items():
        numbered = re.sub(r"%\(\w+\)s", "null", text.decode())
        await conn.execute(f"explain {numbered}".encode(), prepare=False)
        assert name


# --- the claim ----------------------------------------------------------------------------------------------

CLAIM = Claim(
    name="x_claim",
    table="x",
    need="select 1 as wanted",
    ready="t.free",
    order="t.id",
    changes="free = false",
    returning="t.id",
    carried="need.wanted",
)
SHAPE = (
    "with <before>need as (<need>), picked as (select id<carried>) "
    "<table> <ready> <order> <limit> <change> <returning> <after>"
)


def test_a_claim_fills_in_every_word_of_the_shape():
    text = render_claim(SHAPE, CLAIM, before="", after="select")
    assert " ".join(text.split()) == (
        "with need as (select 1 as wanted), picked as (select id, need.wanted) x t.free t.id 1 "
        "update {namespace}.x t set free = false from picked where t.id = any (array(select id from picked)) "
        "and t.id = picked.id t.id select"
    )


def test_a_claim_that_carries_nothing_joins_nothing():
    text = render_claim(SHAPE, replace(CLAIM, carried=None), before="", after="")
    assert " ".join(text.split()).endswith(
        "update {namespace}.x t set free = false where t.id = any (array(select id from picked)) t.id"
    )


def test_a_claim_without_changes_deletes():
    text = render_claim(SHAPE, replace(CLAIM, carried=None, changes=None), before="", after="")
    assert "delete from {namespace}.x t\n  where t.id = any (array(select id from picked))" in text


def test_what_comes_before_a_claim_ends_in_one_comma_whether_or_not_its_file_does():
    for before in ("a as (select 1)", "a as (select 1),", "a as (select 1), "):
        assert render_claim(SHAPE, CLAIM, before=before, after="").startswith("with a as (select 1),\nneed as (")


def test_the_shape_has_no_word_that_a_claim_does_not_fill_in():
    shape = (PACKAGE / "sql" / "claim.sql").read_text()
    assert set(re.findall(r"<(\w+)>", shape)) == set(re.findall(r"<(\w+)>", SHAPE))
    # Without these two the limit counts rows that are not got, or the whole is planned into a join that runs it twice.
    assert "for no key update skip locked" in shape
    assert "picked as materialized" in shape


def test_every_claim_has_a_lane_in_the_conformance_tests():
    assert {lane.claim.name for lane in LANES} == {claim.name for claim in CLAIMS}


# --- style --------------------------------------------------------------------------------------------------


def test_skip_locked_is_written_once():
    """Outside comments and texts for people."""
    sources = [*FILES, *(PACKAGE.parent / "schema").glob("*.sql"), *PACKAGE.rglob("*.py")]
    found = [path.name for path in sources if re.search(r"^[^-#`]*skip\s+locked\s*$", path.read_text(), re.MULTILINE)]
    assert found == ["claim.sql"]


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_a_statement_is_bounded_ordered_and_names_its_columns(path):
    """House style 5: lower case, never `select *`, every limit has an order."""
    text = re.sub(r"--.*", "", path.read_text())
    assert not re.search(r"\b(SELECT|FROM|WHERE|AND|INSERT|UPDATE|DELETE|JOIN)\b", text)
    assert "*" not in text.replace("count(*)", "").replace(" * ", "")
    for limited in re.finditer(r"limit (?!1\b)", text):
        assert "order by" in text[: limited.start()]
