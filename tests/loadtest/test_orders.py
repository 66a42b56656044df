"""Reading order files: every row ends in a cart, a cancellation or a report."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtest.odd import Odd, OrderFileError
from loadtest.orders import Cancellation, Cart, read_orders

ODD_FILE = Path(__file__).parent.parent / "data" / "orders-odd.csv"
HEADER = "InvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country"


def row(invoice="1", code="A", quantity="2", *, description="MUG", price="1.25"):
    return f"{invoice},{code},{description},{quantity},2011-05-02 08:00:00,{price},,Freedonia"


def read(*rows, header=HEADER, end="\n", **bounds):
    return read_orders([("f.csv", end.join([header, *rows, ""]).encode())], **bounds)


def in_words(orders):
    return [(odd.line, odd.reason) for odd in orders.odd]


def rows_accounted_for(orders):
    used = sum(len(invoice.lines) for invoice in orders.invoices)
    return used + sum(odd.rows for odd in orders.odd if odd.reason.refused)


@pytest.fixture
def odd_orders():
    return read_orders([("odd.csv", ODD_FILE.read_bytes())])


def test_every_odd_row_of_the_odd_file_is_reported_by_line_with_its_reason(odd_orders):
    assert in_words(odd_orders) == [
        (9, Odd.NOT_UTF8),
        (17, Odd.POSITIVE),
        (18, Odd.NEGATIVE),
        (19, Odd.ZERO),
        (20, Odd.NO_CODE),
        (21, Odd.NO_INVOICE),
        (22, Odd.NOT_WHOLE),
        (23, Odd.NOT_WHOLE),
        (24, Odd.TOO_MUCH),
        (25, Odd.SHORT_ROW),
        (26, Odd.LONG_ROW),
        (27, Odd.EMPTY_ROW),
        (28, Odd.HEADER_AGAIN),
        (29, Odd.QUOTING),
        (30, Odd.CODE),
        (31, Odd.PRICE),
    ]
    assert rows_accounted_for(odd_orders) == odd_orders.rows == 33
    assert str(odd_orders.odd[2]) == "odd.csv:18: negative quantity outside a cancellation ('-10')"


def test_the_carts_of_the_odd_file_are_as_they_stand_in_it(odd_orders):
    carts = {cart.invoice: [(line.code, line.quantity) for line in cart.lines] for cart in odd_orders.carts}
    assert carts == {
        "700001": [("K100A", 6), ("K100a", 6), ("K100A", 4), ("POST", 1), ("K104", 5)],
        "700002": [("K101", 2880), ("K102", 6)],
        "700003": [("K103", 12), ("K104", 12)],
        "700004": [("BANK CHARGES", 1), ("كوب", 3), ("A/B 50%", 3)],
        "700008": [("K105", 2)],
        "700009": [("K105", 8)],
        "700010": [("K105", 1)],
        "700011": [("K101", 2000)],
    }
    cancellations = {
        each.invoice: [(line.code, line.quantity) for line in each.lines] for each in odd_orders.cancellations
    }
    assert cancellations == {"C700005": [("K101", 80), ("K999", 7)], "C700006": [("D", 1)]}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_line_ends_and_byte_order_marks_make_no_difference(end, bom):
    text = end.join([HEADER, row("1"), row("C2", quantity="-3"), row("3", quantity="0"), ""])
    orders = read_orders([("f.csv", bom + text.encode())])
    assert [type(invoice) for invoice in orders.invoices] == [Cart, Cancellation]
    assert in_words(orders) == [(4, Odd.ZERO)]


def test_utf_16_as_spreadsheets_write_it_is_read():
    text = "\n".join([HEADER, row(code="قدح")]).replace(",", "\t")
    orders = read_orders([("f.csv", text.encode("utf-16"))])
    assert orders.carts[0].lines[0].code == "قدح"


@pytest.mark.parametrize(
    "header",
    [
        "InvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country",
        "Invoice,StockCode,Description,Quantity,InvoiceDate,Price,Customer ID,Country",
        "invoice no, stock code ,description,QUANTITY,invoice_date,unit_price,customer_id,country",
        '"InvoiceNo","StockCode","Description","Quantity","InvoiceDate","UnitPrice","CustomerID","Country"',
    ],
)
def test_variants_of_the_header_are_understood(header):
    assert read(row("7", "B", "4"), header=header).carts[0].lines[0].code == "B"


def test_columns_may_come_in_another_order_and_among_others():
    orders = read("0,5,A,9001,x", header="index,Quantity,StockCode,Invoice,Note")
    assert [(line.code, line.quantity) for line in orders.carts[0].lines] == [("A", 5)]


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_other_delimiters_are_understood(delimiter):
    orders = read(row().replace(",", delimiter), header=HEADER.replace(",", delimiter))
    assert len(orders.carts) == 1


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty"),
        (b"pool,on_hand\nA,3\n", "no header of orders"),
        (b"InvoiceNo,Quantity\n1,2\n", "no column for the code"),
        (b"Invoice,InvoiceNo,StockCode,Quantity\n1,1,A,2\n", "two columns"),
        (b"\xff\xfeI\x00", "no header of orders"),
        (b"\xff\xfeI", "UTF-16"),
    ],
)
def test_a_file_that_is_no_order_file_is_refused_by_name(content, sentence):
    with pytest.raises(OrderFileError, match=rf"f\.csv.*{sentence}"):
        read_orders([("f.csv", content)])


@pytest.mark.parametrize(
    ("quantity", "reason"),
    [
        ("0", Odd.ZERO),
        ("-0", Odd.ZERO),
        ("-1", Odd.NEGATIVE),
        ("", Odd.NOT_WHOLE),
        ("1e3", Odd.NOT_WHOLE),
        ("NaN", Odd.NOT_WHOLE),
        ("0x10", Odd.NOT_WHOLE),
        ("٣", Odd.NOT_WHOLE),
        ("2.5", Odd.NOT_WHOLE),
        ("1000000000001", Odd.TOO_MUCH),
        ("9" * 10_000, Odd.TOO_MUCH),
    ],
)
def test_a_quantity_that_no_line_can_have_is_reported(quantity, reason):
    assert in_words(read(row(quantity=quantity), row())) == [(2, reason)]


@pytest.mark.parametrize("quantity", ["3", "+3", "3.0", "3.", " 3 ", "003"])
def test_spellings_of_a_whole_number_are_read(quantity):
    assert read(row(quantity=quantity)).carts[0].lines[0].quantity == 3


def test_codes_keep_their_case_and_lose_blanks_around_them():
    orders = read(row(code="85123A"), row(code="85123a"), row(code=" 85123a  "))
    assert [line.code for line in orders.carts[0].lines] == ["85123A", "85123a", "85123a"]


def test_a_code_is_one_code_in_whichever_unicode_form_it_is_written():
    orders = read(row(code="CAFE\u0301"), row(code="CAF\u00c9"))
    assert {line.code for line in orders.carts[0].lines} == {"CAFÉ"}


def test_a_code_that_leaves_no_room_for_the_prefix_is_reported():
    assert in_words(read(row(code="A" * 11), row(code="A" * 10), code_length_max=10)) == [(2, Odd.CODE)]


def test_an_invoice_is_one_cart_wherever_its_rows_stand():
    first, second = (f"{HEADER}\n{row('1', code)}\n{row('2')}\n".encode() for code in "AB")
    orders = read_orders([("a.csv", first), ("b.csv", second)])
    assert [(line.file, line.line, line.code) for line in orders.carts[0].lines] == [
        ("a.csv", 2, "A"),
        ("b.csv", 2, "B"),
    ]


def test_a_cart_over_the_bound_of_lines_is_left_out_as_a_whole_and_counted_by_its_rows():
    orders = read(*[row("1", f"A{number}") for number in range(4)], row("2"), lines_max=3)
    assert [cart.invoice for cart in orders.carts] == ["2"]
    assert [(odd.line, odd.reason, odd.rows) for odd in orders.odd] == [(2, Odd.CART_LINES, 4)]
    assert rows_accounted_for(orders) == 5


def test_a_cart_that_asks_for_more_of_one_code_than_a_line_may_is_left_out():
    orders = read(row(quantity=str(10**12)), row(quantity="1"))
    assert in_words(orders) == [(2, Odd.CART_QUANTITY)]
    assert not orders.carts


def test_a_quoted_description_may_run_over_lines_and_the_next_row_is_named_by_its_own():
    orders = read(row(description='"CLOCK\nROUND, ""LARGE"""'), row(quantity="0"))
    assert in_words(orders) == [(4, Odd.ZERO)]
    assert len(orders.carts[0].lines) == 1


def test_a_broken_quote_does_not_swallow_the_rows_after_it():
    orders = read(row(description='"MUG'), row("2"), row("3", description='"A, B"'), row("4"))
    assert in_words(orders) == [(2, Odd.QUOTING)]
    assert [cart.invoice for cart in orders.carts] == ["2", "3", "4"]


@pytest.mark.parametrize("rows_between", [0, 1])
def test_a_broken_quote_that_another_one_seems_to_close_is_noticed(rows_between):
    between = [row("2")] * rows_between
    orders = read(row(description='"MUG'), *between, row("3", description='"'), row("4"))
    assert in_words(orders) == [(2, Odd.QUOTING), (3 + rows_between, Odd.QUOTING)]
    assert orders.carts[-1].invoice == "4"
    assert rows_accounted_for(orders) == orders.rows == 3 + rows_between


def test_only_the_row_that_is_not_utf_8_is_read_as_latin_1():
    content = f"{HEADER}\n".encode() + row(code="CAF\u00c9").encode("latin-1") + f"\n{row(code='ß')}\n".encode()
    orders = read_orders([("f.csv", content)])
    assert [line.code for line in orders.carts[0].lines] == ["CAFÉ", "ß"]
    assert in_words(orders) == [(2, Odd.NOT_UTF8)]


def test_a_row_is_used_although_its_price_is_no_number():
    orders = read(row(price="free"), row(price="-11062.06"), row(price="1e-2"), row(price=""))
    assert in_words(orders) == [(2, Odd.PRICE), (5, Odd.PRICE)]
    assert len(orders.carts[0].lines) == 4


def test_blank_rows_are_reported_and_change_nothing():
    assert in_words(read("", row(), " ", ",,,,,,,")) == [(2, Odd.EMPTY_ROW), (4, Odd.EMPTY_ROW), (5, Odd.EMPTY_ROW)]


@given(st.binary(max_size=400))
def test_whatever_stands_below_the_header_is_used_or_reported(content):
    orders = read_orders([("f.csv", f"{HEADER}\n{row()}\n".encode() + content)])
    assert rows_accounted_for(orders) == orders.rows


@given(st.lists(st.text(alphabet='1ACc,"\n\r;- .é\x00\ud800', max_size=30), max_size=12))
def test_rows_of_hostile_characters_are_used_or_reported(rows):
    content = "\n".join([HEADER, row(), *rows]).encode("utf-8", "surrogatepass")
    orders = read_orders([("f.csv", content)])
    assert rows_accounted_for(orders) == orders.rows
    assert all(odd.line >= 2 for odd in orders.odd)
