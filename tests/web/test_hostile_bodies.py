"""Bodies that are broken, huge or sly: each is refused by its own sentence, before anything happens."""

import json

import pytest

from tests.web.conftest import Api, refused

LINE = b'{"pool":"mug","quantity":1}'
#: One number at a time, in place of a quantity.
NUMBERS = [b"1.0", b"1e0", b'"1"', b"true", b"null", b"[1]", b"{}", b"0", b"-1", b"-0", b"1.5", b"1000000000001"]
HUGE_NUMBERS = [b"9223372036854775808", b"-9223372036854775809", b"1e400", b"-1e400", b"9" * 310, b"9" * 5000]


def cart(quantity: bytes) -> bytes:
    return b'{"lines":[{"pool":"mug","quantity":' + quantity + b"}]}"


@pytest.mark.parametrize("number", NUMBERS + HUGE_NUMBERS)
async def test_a_quantity_that_is_no_whole_number_in_its_bounds_is_refused_with_them(reader: Api, number: bytes):
    problem = refused(await reader.post_raw(cart(number)), 422, "validation-failed")
    (fault,) = problem["errors"]
    assert fault["pointer"] == "/lines/0/quantity"
    assert "from 1 to 1000000000000" in fault["detail"] or "1.8e308" in fault["detail"]


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b" ",
        b"{",
        b"}",
        b"{}{}",
        b"{} x",
        b"{'lines':[]}",
        b'{"lines":[],}',
        b'{"lines":[01]}',
        b'{"lines":[1.]}',
        b'{"lines":[+1]}',
        b'{"lines":[0x1]}',
        b'{"lines":["\\x"]}',
        b'{"lines":["a\nb"]}',
        b'{"lines":["\x00"]}',
        b'{"owner":"\xff"}',
        b'{"owner":"\xed\xa0\x80"}',
        b'{"owner":"\xc0\xaf"}',
        b"\xef\xbb\xbf{}",
        '{"lines":[]}'.encode("utf-16"),
        b"\x00",
        cart(b"NaN"),
        cart(b"Infinity"),
        cart(b"-Infinity"),
        b'{"metadata":{"a":NaN}}',
        b"undefined",
    ],
)
async def test_what_is_not_json_in_utf8_cannot_be_read(reader: Api, broken: bytes):
    refused(await reader.post_raw(broken), 400, "invalid-request")


@pytest.mark.parametrize("body", [b"[]", b"null", b"1", b'"x"', b"true", b"[{}]"])
async def test_json_that_is_no_object_has_that_fault(reader: Api, body: bytes):
    problem = refused(await reader.post_raw(body), 422, "validation-failed")
    assert problem["errors"] == [{"pointer": "", "detail": "must be an object"}]


@pytest.mark.parametrize(
    "twice",
    [
        b'{"lines":[' + LINE + b'],"owner":"a","owner":"a"}',
        b'{"lines":[{"pool":"mug","quantity":9,"quantity":1}]}',
        b'{"lines":[' + LINE + b'],"owner":"a","\\u006fwner":"b"}',
        b'{"lines":[' + LINE + b'],"metadata":{"a":{"b":1,"b":1}}}',
    ],
)
async def test_a_name_that_appears_twice_makes_a_body_unreadable(reader: Api, twice: bytes):
    assert "twice" in refused(await reader.post_raw(twice), 400, "invalid-request")["detail"]


@pytest.mark.parametrize(
    "nested",
    [
        b"[" * 1_000_000,
        b'{"a":' * 200_000,
        b'{"metadata":' + b"[" * 32 + b"]" * 32 + b"}",
        b'{"metadata":{"a":' + b"[" * 500 + b"]" * 500 + b"}}",
        b"[" * 100_000 + b"]" * 100_000,
    ],
)
async def test_deep_nesting_is_refused_with_its_bound(reader: Api, nested: bytes):
    assert "32 levels" in refused(await reader.post_raw(nested), 400, "invalid-request")["detail"]


async def test_the_deepest_nesting_allowed_and_many_brackets_side_by_side_are_read(reader: Api):
    deep = b'{"lines":[],"metadata":{"a":' + b"[" * 30 + b"]" * 30 + b"}}"
    wide = b'{"lines":[],"metadata":{"a":[' + b"[]," * 200 + b'[]],"b":"' + b"[" * 200 + b'"}}'
    for body in (deep, wide):
        (fault,) = refused(await reader.post_raw(body), 422, "validation-failed")["errors"]
        assert fault == {"pointer": "/lines", "detail": "must have 1 to 1000 lines, has 0"}


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        (b'{"lines":[{"pool":"a\\u0000b","quantity":1}]}', "/lines/0/pool"),
        (b'{"lines":[{"pool":"\\ud800","quantity":1}]}', "/lines/0/pool"),
        (b'{"lines":[' + LINE + b'],"owner":"\\udfff"}', "/owner"),
        (b'{"lines":[' + LINE + b'],"mode":"\\ud800"}', "/mode"),
        (b'{"lines":[' + LINE + b'],"metadata":{"a":["x",{"b":"\\u0000"}]}}', "/metadata/a/1/b"),
        (b'{"lines":[' + LINE + b'],"metadata":{"\\u0000":1}}', "/metadata/\0"),
        (b'{"lines":[' + LINE + b'],"metadata":{"~/":"\\uDC00\\uD800"}}', "/metadata/~0~1"),
        (b'{"lines":[' + LINE + b'],"metadata":{"a":1e400}}', "/metadata/a"),
        (b'{"lines":[' + LINE + b'],"metadata":{"a":[' + b"9" * 5000 + b"]}}", "/metadata/a/0"),
    ],
)
async def test_what_postgresql_cannot_store_is_pointed_at(reader: Api, body: bytes, pointer: str):
    (fault,) = refused(await reader.post_raw(body), 422, "validation-failed")["errors"]
    assert fault["pointer"] == pointer


async def test_a_lone_surrogate_in_a_name_is_pointed_at_by_its_escape(reader: Api):
    answer = await reader.post_raw(b'{"lines":[' + LINE + b'],"\\ud800":1}')
    assert answer.status_code == 422
    assert b'"pointer":"/\\ud800"' in answer.content


@pytest.mark.parametrize("text", ["\u0000", "a\u001bb", "a\u0085b", "\u200b" * 201, "", "   ", "x" * 201])
async def test_keys_owners_and_references_are_short_text_without_control_characters(reader: Api, text: str):
    answer = await reader.place(lines=[{"pool": text, "quantity": 1}], owner=text, reference=text)
    problem = refused(answer, 422, "validation-failed")
    assert {fault["pointer"] for fault in problem["errors"]} == {"/lines/0/pool", "/owner", "/reference"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("lines", {}),
        ("lines", "mug"),
        ("lines", None),
        ("lines", []),
        ("owner", 1),
        ("owner", ["a"]),
        ("reference", True),
        ("mode", "best_effort"),
        ("mode", None),
        ("confirm", True),
        ("confirm", 0),
        ("confirm", None),
        ("metadata", "x"),
        ("metadata", []),
        ("any_of", ["mug"]),
        ("a/b~c", 1),
        ("", 1),
    ],
)
async def test_a_field_of_the_wrong_type_or_unknown_is_named(reader: Api, field: str, value: object):
    (fault,) = refused(await reader.place(**{field: value}), 422, "validation-failed")["errors"]
    assert fault["pointer"] == "/" + field.replace("~", "~0").replace("/", "~1")


@pytest.mark.parametrize("field", ["any_of", "units", "min_quantity", "together", "split"])
async def test_a_line_has_no_fields_of_later_versions(reader: Api, field: str):
    lines = [{"pool": "mug", "quantity": 1}, {"pool": "mug", "quantity": 1, field: 1}]
    (fault,) = refused(await reader.place(lines=lines), 422, "validation-failed")["errors"]
    assert fault == {"pointer": f"/lines/1/{field}", "detail": "is not a known field"}


async def test_all_faults_of_a_body_are_reported_at_once(reader: Api):
    body = {
        "lines": [{"pool": "", "quantity": 0}, {"quantity": True, "x": 1}, 5],
        "ttl_seconds": 0,
        "owner": "\0",
        "extra": None,
        "metadata": {"a": "\0"},
    }
    problem = refused(await reader.post("/v1/holds", json=body, key="k"), 422, "validation-failed")
    assert {fault["pointer"] for fault in problem["errors"]} == {
        "/lines/0/pool",
        "/lines/0/quantity",
        "/lines/1/pool",
        "/lines/1/quantity",
        "/lines/1/x",
        "/lines/2",
        "/ttl_seconds",
        "/owner",
        "/extra",
        "/metadata/a",
    }
    assert len(problem["errors"]) == 10
    assert "(and 9 more)" in problem["detail"]


async def test_the_lines_of_one_pool_have_one_bound_together(api: Api):
    await api.put_pool(on_hand=5)
    half = 5 * 10**11
    fitting = [{"pool": "mug", "quantity": half}, {"pool": " mug", "quantity": half}]
    assert refused(await api.place(lines=fitting), 409, "insufficient-stock")["shortfalls"][0]["requested"] == 10**12
    beyond = [*fitting, {"pool": "mug", "quantity": 1}]
    (fault,) = refused(await api.place(lines=beyond), 422, "validation-failed")["errors"]
    assert fault["pointer"] == "/lines"
    assert "'mug'" in fault["detail"]
    assert "1000000000000" in fault["detail"]


async def test_more_lines_than_allowed_are_one_fault(reader: Api):
    (fault,) = refused(await reader.place(lines=[5] * 1001), 422, "validation-failed")["errors"]
    assert fault == {"pointer": "/lines", "detail": "must have 1 to 1000 lines, has 1001"}


async def test_a_hundred_faults_are_listed_and_the_rest_counted(reader: Api):
    problem = refused(await reader.place(lines=[{}] * 100), 422, "validation-failed")
    assert len(problem["errors"]) == 101
    assert problem["errors"][-1] == {"pointer": "", "detail": "has 100 faults more, which are not listed"}


async def test_a_refusal_stays_short_however_much_is_wrong(reader: Api):
    many = {f"field {number}": 1 for number in range(100_000)}
    long = {"x" * 1_000_000: 1}
    for body in (many, long, {"lines": [many]}, {"lines": [long]}):
        answer = await reader.post("/v1/holds", json=body, key="k")
        refused(answer, 422, "validation-failed")
        assert len(answer.content) < 20_000
    twice = b'{"' + b"x" * 100_000 + b'":1,"' + b"x" * 100_000 + b'":1}'
    assert len((await reader.post_raw(twice)).content) < 1000


@pytest.mark.parametrize("size", [4 * 2**20 + 1, 10_000_000])
async def test_a_body_over_the_limit_is_too_large(reader: Api, size: int):
    problem = refused(await reader.post_raw(b'{"owner":"' + b"x" * (size - 12) + b'"}'), 413, "body-too-large")
    assert "4194304" in problem["detail"]


async def test_a_body_of_just_the_limit_is_read(reader: Api):
    body = b'{"owner":"' + b"x" * (4 * 2**20 - 12) + b'"}'
    assert len(body) == 4 * 2**20
    refused(await reader.post_raw(body), 422, "validation-failed")


async def test_metadata_has_its_own_bound_in_bytes(api: Api):
    await api.put_pool(on_hand=5)
    fitting = {"a": "é" * ((16_384 - 8) // 2)}
    assert len(json.dumps(fitting, ensure_ascii=False, separators=(",", ":")).encode()) == 16_384
    refused(await api.place(quantity=9, metadata=fitting), 409, "insufficient-stock")
    (fault,) = refused(await api.place(metadata=fitting | {"b": 1}), 422, "validation-failed")["errors"]
    assert fault == {"pointer": "/metadata", "detail": "must have at most 16384 bytes as compact JSON, has 16390"}


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "application/problem+json"},
        {"Content-Type": "application/json; charset=utf-16"},
        {"Content-Type": "application/json; charset=latin-1"},
        {"Content-Type": "application/jsonx"},
        {"Content-Type": ""},
        {"Content-Type": "application/json", "Content-Encoding": "gzip"},
    ],
)
async def test_another_media_type_than_json_in_utf8_is_refused(reader: Api, headers: dict[str, str]):
    answer = await reader.client.post("/v1/holds", content=b'{"lines":[]}', headers={"Idempotency-Key": "k"} | headers)
    refused(answer, 415, "unsupported-media-type")


@pytest.mark.parametrize(
    "media_type",
    ["application/json;charset=UTF-8", 'Application/JSON ; charset="utf-8"', "application/json; profile=x"],
)
async def test_json_in_utf8_is_read_however_it_is_declared(reader: Api, media_type: str):
    refused(await reader.post_raw(b"{}", Content_Type=media_type), 422, "validation-failed")
