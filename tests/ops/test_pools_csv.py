"""Pools from CSV: what is read, what is refused by its line, and that a refusal changes nothing."""

import asyncio

import pytest

from reserve.db.connection import Database
from reserve.errors import InvalidRequest, ReserveError, ValidationFailed
from reserve.inventory import adjustments, pools
from reserve.inventory.importing import Imported, PoolImport
from reserve.inventory.rows import Adjust, PoolChange, PoolFilter
from reserve.ops.audit import audit
from reserve.ops.pools_csv import Row, import_pools, read_file, read_pools
from tests.ops.shop import place, render


def read(text, *, rows_max=100, quantity_max=10**12):
    return read_pools(text if isinstance(text, bytes) else text.encode(), rows_max=rows_max, quantity_max=quantity_max)


# --- reading ------------------------------------------------------------------------------------------------


def test_a_file_is_read_row_by_row_with_the_lines_that_an_editor_shows():
    assert read("pool,on_hand,buffer\nmug,10,2\n\nposter,5,\n") == [
        Row(2, PoolImport("mug", 10, 2)),
        Row(4, PoolImport("poster", 5, None)),
    ]


@pytest.mark.parametrize(
    "text",
    [
        b"pool,on_hand\nmug,10\n",
        b"pool,on_hand\nmug,10",
        b"\xef\xbb\xbfpool,on_hand\r\nmug,10\r\n",
        b"pool,on_hand\rmug,10\r",
        b'"pool","on_hand"\n"mug","10"\n',
        b" pool , on_hand \n mug , 10 \n",
        b"on_hand,pool\n10,mug\n",
        b"pool,on_hand,buffer\nmug,0010,\n,,\n  \n",
        b"\n\npool,on_hand\nmug,10\n",
    ],
    ids=["plain", "no end", "BOM and CRLF", "old Mac", "quoted", "blanks", "order", "empty rows", "empty first"],
)
def test_spreadsheets_write_it_in_many_ways(text):
    assert [row.pool for row in read(text)] == [PoolImport("mug", 10)]


def test_a_key_may_have_commas_quotes_and_letters_of_any_script():
    text = 'pool,on_hand\n"mug, blue",1\n"the ""big"" one",2\nكوب,3\n☕/50%,4\n'
    assert [row.pool.key for row in read(text)] == ["mug, blue", 'the "big" one', "كوب", "☕/50%"]


def test_a_file_of_a_heading_alone_has_no_pools():
    assert read("pool,on_hand\n") == []


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("mug", "there are 1 cells where the heading has 3"),
        ("mug,1,2,3", "there are 4 cells where the heading has 3"),
        (",1,", "pool must not be empty"),
        ("x" * 201 + ",1,", "pool must have at most 200 characters, has 201"),
        ("m\x00ug,1,", "pool must not contain the character U+0000"),
        ('"m\nug",1,', "pool must not contain the character U+000A"),
        ("mug,,", "on_hand must be a whole number from 0 to 1000000000000, and is ''"),
        ("mug,-1,", "on_hand must be a whole number from 0 to 1000000000000, and is '-1'"),
        ("mug,+1,", "on_hand must be a whole number from 0 to 1000000000000, and is '+1'"),
        ("mug,1.0,", "on_hand must be a whole number from 0 to 1000000000000, and is '1.0'"),
        ('mug,"1,000",', "on_hand must be a whole number from 0 to 1000000000000, and is '1,000'"),
        ("mug,1e3,", "on_hand must be a whole number from 0 to 1000000000000, and is '1e3'"),
        ("mug,NaN,", "on_hand must be a whole number from 0 to 1000000000000, and is 'NaN'"),
        ("mug,٣,", "on_hand must be a whole number from 0 to 1000000000000, and is '٣'"),
        ("mug,1000000000001,", "on_hand must be a whole number from 0 to 1000000000000, and is '1000000000001'"),
        (f"mug,{'9' * 5000},", f"on_hand must be a whole number from 0 to 1000000000000, and is '{'9' * 40}…'"),
        ("mug,10,x", "buffer must be a whole number from 0 to 1000000000000, and is 'x'"),
        ("mug,10,11", "a buffer of 11 needs as much on hand, and on_hand is 10"),
    ],
)
def test_a_wrong_row_is_named_by_its_line(row, sentence):
    with pytest.raises(ValidationFailed) as refusal:
        read(f"pool,on_hand,buffer\nposter,1,\n{row}\nvinyl,3,\n")
    assert str(refusal.value) == f"line 3: {sentence}"


def test_a_pool_that_occurs_twice_is_named_with_both_lines_also_when_it_is_written_otherwise():
    with pytest.raises(ValidationFailed) as refusal:
        read("pool,on_hand\ncafé,1\nmug,1\n cafe\u0301 ,2\n")
    assert str(refusal.value) == "line 4: the pool 'café' is on line 2 already"


def test_all_wrong_rows_are_named_at_once_but_not_more_than_twenty():
    with pytest.raises(ValidationFailed) as refusal:
        read("pool,on_hand\n" + "mug,x\n" * 30)
    assert len(refusal.value.faults) == 21
    assert refusal.value.faults[19].pointer == "line 21"
    assert refusal.value.faults[20].pointer == "and 10 more lines"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "The file is empty; its first line must be the heading pool,on_hand[,buffer]."),
        ("\n \n", "The file is empty; its first line must be the heading pool,on_hand[,buffer]."),
        (
            "mug,10\n",
            "Line 1: the heading must be pool,on_hand[,buffer] with commas, and is 'mug,10'.",
        ),
        (
            "pool;on_hand\nmug;1\n",
            "Line 1: the heading must be pool,on_hand[,buffer] with commas, and is 'pool;on_hand'.",
        ),
        ("pool\nmug\n", "Line 1: the heading must be pool,on_hand[,buffer] with commas, and is 'pool'."),
        (
            "pool,on_hand,pool\na,1,b\n",
            "Line 1: the heading must be pool,on_hand[,buffer] with commas, and is 'pool,on_hand,pool'.",
        ),
        (b"pool,on_hand\nmug,1\ncaf\xe9,1\n", "Line 3: the file is not UTF-8; save it as UTF-8 and import it again."),
        ('pool,on_hand\nmug,1\n"poster,1\n', "Line 3: this is not CSV (unexpected end of data)."),
        ('pool,on_hand\n"mug"x,1\n', "Line 2: this is not CSV (',' expected after '\"')."),
    ],
)
def test_what_is_no_such_file_is_refused_in_a_sentence(text, sentence):
    with pytest.raises(InvalidRequest) as refusal:
        read(text)
    assert str(refusal.value) == sentence


def test_a_file_of_too_many_pools_is_refused_at_the_line_where_they_are_too_many():
    text = "pool,on_hand\n" + "".join(f"p{number},1\n" for number in range(4))
    assert len(read(text, rows_max=4)) == 4
    with pytest.raises(InvalidRequest, match=r"Line 5: .*more than 3 pools.*RESERVE_IMPORT_ROWS_MAX"):
        read(text, rows_max=3)


def test_a_file_is_not_read_beyond_what_its_pools_could_need(tmp_path):
    file = tmp_path / "pools.csv"
    file.write_bytes(b"x" * 10_000)
    assert len(read_file(file, rows_max=9)) == 10_000
    with pytest.raises(InvalidRequest, match="more than 2048 bytes"):
        read_file(file, rows_max=1)


def test_a_file_that_is_not_there_is_a_sentence(tmp_path):
    with pytest.raises(InvalidRequest, match="cannot be read"):
        read_file(tmp_path / "none.csv", rows_max=1)
    with pytest.raises(InvalidRequest, match="cannot be read"):
        read_file(tmp_path, rows_max=1)


# --- importing ----------------------------------------------------------------------------------------------


async def test_an_import_makes_pools_as_a_put_would(database):
    text = b"pool,on_hand,buffer\nmug,10000,100\nposter,7,\nvinyl,0,0\n"
    assert await import_pools(database, text) == Imported(created=3, changed=0, unchanged=0)
    await pools.put(database, "made by put", PoolChange(on_hand=10_000, buffer=100))
    imported, put = await pools.get(database, "mug"), await pools.get(database, "made by put")
    for name in ("kind", "state", "on_hand", "available", "held", "confirmed", "buffer", "version", "metadata"):
        assert getattr(imported, name) == getattr(put, name), name
    assert (await pools.get(database, "poster")).available == 7
    page = await adjustments.find(database, "mug", after=None, limit=10)
    assert [(each.delta, each.reason, each.on_hand) for each in page.items] == [(10_000, "created", 10_000)]
    report = await audit(database)
    assert report.clean
    assert report.slots == 16 + 16 + 1 + 1


async def test_importing_the_same_file_again_changes_nothing_also_when_stock_is_held(database):
    text = b"pool,on_hand,buffer\nmug,10,1\nposter,7,\n"
    await import_pools(database, text)
    await place(database, "mug", 4)
    before = await pools.get(database, "mug")
    assert await import_pools(database, text) == Imported(created=0, changed=0, unchanged=2)
    assert (await pools.get(database, "mug")).version == before.version


async def test_a_file_may_bring_new_pools_beside_old_ones_and_set_their_buffers(database):
    await import_pools(database, b"pool,on_hand,buffer\nmug,10,1\nposter,7,3\n")
    done = await import_pools(database, b"pool,on_hand,buffer\nvinyl,3,\nposter,7,\nmug,10,2\n")
    assert done == Imported(created=1, changed=1, unchanged=1)
    assert (await pools.get(database, "mug")).buffer == 2
    assert (await pools.get(database, "poster")).buffer == 3, "an empty cell leaves it"
    assert (await audit(database)).clean


async def refused(database, text):
    with pytest.raises(ReserveError) as refusal:
        await import_pools(database, text)
    return str(refusal.value)


async def keys(database):
    page = await pools.find(database, PoolFilter(), after=None, limit=1000)
    return [pool.key for pool in page.items]


async def test_another_on_hand_than_a_pool_has_is_refused_by_line_and_nothing_is_imported(database):
    await pools.put(database, "mug", PoolChange(on_hand=10))
    await pools.put(database, "poster", PoolChange(on_hand=7))
    text = b"pool,on_hand\nvinyl,3\nposter,8\n\nmug,11\nzebra,1\n"
    assert await refused(database, text) == (
        "line 3: 'poster' exists with 7 on hand, not 8; only an adjustment changes that; "
        "line 5: 'mug' exists with 10 on hand, not 11; only an adjustment changes that"
    )
    assert await keys(database) == ["mug", "poster"]


async def test_after_an_adjustment_the_old_file_no_longer_fits(database):
    text = b"pool,on_hand\nmug,10\n"
    await import_pools(database, text)
    await adjustments.adjust(database, "mug", Adjust(5, "delivery"), None, render)
    assert "exists with 15 on hand, not 10" in await refused(database, text)


async def test_a_buffer_into_what_is_promised_is_refused_by_line_and_nothing_is_imported(database):
    await pools.put(database, "mug", PoolChange(on_hand=10))
    await pools.put(database, "poster", PoolChange(on_hand=10))
    await place(database, "mug", 8)
    sentence = await refused(database, b"pool,on_hand,buffer\nvinyl,3,\nposter,10,2\nmug,10,3\n")
    assert sentence.startswith("line 4: 'mug': A buffer of 3 would reach into what is promised")
    assert await keys(database) == ["mug", "poster"]
    assert (await pools.get(database, "poster")).buffer == 0


async def test_a_wrong_row_at_the_end_keeps_all_before_it_out(database):
    assert await refused(database, b"pool,on_hand\nmug,1\nposter,2\nvinyl,x\n") != ""
    assert await keys(database) == []


async def test_the_bounds_are_the_settings(settings):
    narrow = settings.model_copy(update={"import_rows_max": 1, "quantity_max": 9})
    async with Database.open(narrow) as database:
        assert "more than 1 pools" in await refused(database, b"pool,on_hand\na,1\nb,1\n")
        assert "from 0 to 9" in await refused(database, b"pool,on_hand\na,10\n")


async def test_a_long_file_is_imported_in_sets_and_tells_how_far_it_is(database):
    text = "pool,on_hand\n" + "".join(f"pool-{number},{number}\n" for number in range(2500))
    steps = []
    done = await import_pools(database, text.encode(), lambda count, total: steps.append((count, total)))
    assert done.created == 2500
    assert steps == [(1000, 2500), (2000, 2500), (2500, 2500)]
    assert (await audit(database)).clean


async def test_two_imports_of_the_same_pools_at_once_make_them_once(database):
    names = [f"pool-{number},{number}" for number in range(300)]
    there, back = (("pool,on_hand\n" + "\n".join(rows)).encode() for rows in (names, reversed(names)))
    one, other = await asyncio.gather(import_pools(database, there), import_pools(database, back))
    assert sorted([one.created, other.created]) == [0, 300]
    assert sorted([one.unchanged, other.unchanged]) == [0, 300]
    assert (await audit(database)).clean
