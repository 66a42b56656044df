"""`reserve jobs` and `reserve lanes`: what they print, and what they refuse."""

import json

import pytest

from reserve.jobs import lanes
from reserve.jobs.claiming import claim
from reserve.jobs.enqueuing import enqueue, enqueue_many
from reserve.jobs.finishing import finish
from reserve.jobs.managing import discard, get
from reserve.jobs.rows import Enqueue, Fail, LaneChange


@pytest.fixture
async def failed(database):
    """A job that has failed for good, with a long and odd error."""
    await enqueue(database, Enqueue("mail", "send", {"to": "é"}))
    (claimed,) = await claim(database, "mail", "w-1", limit=1)
    error = "[red]no luck[/red] " + "x" * 100 + "\nsecond line"
    await finish(database, Fail(claimed.id, claimed.token, error, discard=True))
    return await get(database, claimed.id)


async def test_jobs_are_listed_as_a_table_newest_first(reserve, of_database, database, failed):
    waiting = await enqueue(database, Enqueue("post", "print"))
    done = reserve("jobs", "list", **of_database)
    assert (done.code, done.err) == (0, "")
    rows = [line for line in done.out.splitlines() if "│" in line]
    assert [row.split("│")[1].strip() for row in rows] == [str(waiting.id), str(failed.id)]
    assert "[red]no luck[/red]" in rows[1]
    assert "second line" not in done.out
    assert "1/20" in rows[1]


async def test_jobs_are_listed_by_lane_state_and_kind_and_a_page_at_a_time(reserve, of_database, database, failed):
    many = await enqueue_many(database, [Enqueue("post", "print")] * 3)
    chosen = reserve(
        "jobs", "list", "--state", "discarded", "--lane", "mail", "--kind", "send", "--json", **of_database
    )
    assert [job["id"] for job in json.loads(chosen.out)] == [failed.id]
    page = reserve("jobs", "list", "--limit", "2", "--json", **of_database)
    assert [job["id"] for job in json.loads(page.out)] == [many[2].id, many[1].id]
    told = reserve("jobs", "list", "--limit", "2", **of_database)
    assert told.err == f"There are more: --after {many[1].id}\n"
    rest = reserve("jobs", "list", "--after", many[1].id, "--json", **of_database)
    assert [job["id"] for job in json.loads(rest.out)] == [many[0].id, failed.id]
    assert json.loads(reserve("jobs", "list", "--lane", "none", "--json", **of_database).out) == []


async def test_one_job_is_shown_with_all_of_its_error(reserve, of_database, failed):
    done = reserve("jobs", "show", failed.id, **of_database)
    assert done.code == 0
    assert "second line" in done.out
    assert 'payload          {"to": "é"}' in done.out
    assert "worker           w-1" in done.out
    job = json.loads(reserve("jobs", "show", failed.id, "--json", **of_database).out)
    assert (job["id"], job["state"], job["error"]) == (failed.id, "discarded", failed.error)


async def test_an_unknown_job_is_a_sentence(reserve, of_database):
    for verb in ("show", "retry", "cancel", "discard"):
        done = reserve("jobs", verb, 4711, **of_database)
        assert (done.code, done.out) == (1, "")
        assert done.err.startswith("reserve: ")
        assert "4711" in done.err
        assert done.err.count("\n") == 1


async def test_each_job_is_told_what_became_of_it_and_a_refusal_spoils_no_other(reserve, of_database, database):
    one, two, running = await enqueue_many(database, [Enqueue("a", "k"), Enqueue("a", "k"), Enqueue("b", "k")])
    await claim(database, "b", "w", limit=1)
    done = reserve("jobs", "cancel", one.id, 4711, running.id, **of_database)
    assert (done.code, done.out) == (1, f"{one.id} cancelled\n{running.id} running, asked to stop\n")
    assert done.err.count("\n") == 1
    assert reserve("jobs", "discard", two.id, **of_database).out == f"{two.id} discarded\n"
    done = reserve("jobs", "retry", one.id, two.id, **of_database)
    assert (done.code, done.out) == (0, f"{one.id} ready\n{two.id} ready\n")


async def test_all_discarded_jobs_of_a_lane_are_retried(reserve, of_database, database):
    for kind in ("a", "a", "b"):
        await discard(database, (await enqueue(database, Enqueue("mail", kind))).id)
    told = "jobs of the lane 'mail' are ready again.\n"
    assert reserve("jobs", "retry", "--lane", "mail", "--limit", "1", **of_database).out == f"1 {told}"
    assert reserve("jobs", "retry", "--lane", "mail", "--kind", "b", **of_database).out == f"1 {told}"
    assert reserve("jobs", "retry", "--lane", "mail", **of_database).out == f"1 {told}"
    assert (await lanes.get(database, "mail")).ready == 3
    unknown = reserve("jobs", "retry", "--lane", "none", **of_database)
    assert (unknown.code, unknown.out) == (1, "")
    assert "'none'" in unknown.err


@pytest.mark.parametrize(
    "words",
    [
        ["retry"],
        ["retry", "1", "--lane", "a"],
        ["retry", "1", "--kind", "a"],
        ["retry", "0"],
        ["show", "x"],
        ["show", str(2**63)],
        ["list", "--state", "held"],
        ["list", "--limit", "0"],
        ["cancel"],
    ],
)
def test_wrong_usage_is_exit_code_2(reserve, of_database, words):
    done = reserve("jobs", *words, **of_database)
    assert (done.code, done.out) == (2, "")
    assert "Traceback" not in done.err


async def test_lanes_are_listed_with_what_waits_and_runs(reserve, of_database, database):
    await enqueue_many(database, [Enqueue("mail", "k"), Enqueue("mail", "k"), Enqueue("mail", "k", delay_seconds=60)])
    await claim(database, "mail", "w", limit=1)
    await lanes.put(database, "[b]idle", LaneChange(paused=True))
    done = reserve("lanes", **of_database)
    idle, mail = ([cell.strip() for cell in line.split("│")[1:-1]] for line in done.out.splitlines() if "│" in line)
    assert (done.code, done.err) == (0, "")
    assert idle == ["[b]idle", "0", "0", "0", "0", "", "paused"]
    assert mail[:5] == ["mail", "1", "1", "1", "0"]
    assert mail[5].endswith(" s")
    found = json.loads(reserve("lanes", "--json", **of_database).out)
    assert [(lane["name"], lane["ready"]) for lane in found] == [("[b]idle", 0), ("mail", 1)]
    page = reserve("lanes", "--limit", "1", **of_database)
    assert page.err == "There are more: --after '[b]idle'\n"
    assert [
        lane["name"] for lane in json.loads(reserve("lanes", "--after", "[b]idle", "--json", **of_database).out)
    ] == ["mail"]


def test_help_names_what_can_be_done_with_jobs(reserve):
    assert "lanes" in reserve("--help").out
    text = reserve("jobs", "--help").out
    for command in ("list", "show", "retry", "cancel", "discard"):
        assert command in text
