"""The arithmetic of the job benchmark, its table, its command line: what can be told without a server."""

import io
import json
import re

import pytest
from rich.console import Console

from loadtest.jobs_contestants import OURS, PEERS, command
from loadtest.jobs_environments import NotInstalledError, install
from loadtest.jobs_figures import CheckError, Figure, Findings, Ratio, check_tally, demand, middle
from loadtest.jobs_options import PARTS, parse
from loadtest.jobs_options import PEERS as PEER_NAMES
from loadtest.jobs_report import print_findings
from loadtest.jobs_statistics import Latencies, latencies, percentile, rate_between
from loadtest.peers.lines import Tally


def test_a_percentile_is_a_value_that_was_measured():
    assert percentile([30, 10, 20], 0.5) == 20
    assert percentile(range(1, 101), 0.99) == 99
    assert percentile(range(1, 101), 1) == 100
    assert percentile([7], 0.01) == 7
    with pytest.raises(ValueError, match="no values"):
        percentile([], 0.5)


def test_latencies_are_milliseconds_of_microseconds_and_nothing_of_nothing():
    assert latencies([1000, 2000, 3000]) == Latencies(2.0, 3.0, 3)
    assert latencies([]) is None


def test_a_rate_is_read_between_two_samples():
    samples = [(0.0, 0), (10.0, 1000), (20.0, 1500)]
    assert rate_between(samples, 0, 20) == 75
    assert rate_between(samples, 5, 15) == 75
    assert rate_between(samples, 10, 20) == 50
    with pytest.raises(ValueError, match="around second 21"):
        rate_between(samples, 0, 21)
    with pytest.raises(ValueError, match="some time"):
        rate_between(samples, 5, 5)


def test_the_median_of_rounds_comes_with_their_spread():
    assert middle([5.0]) == (5.0, "")
    assert middle([1000.0, 3000.0, 1500.0]) == (1500.0, "3 rounds, 1,000 to 3,000")


@pytest.mark.parametrize(
    ("ratio", "reached"),
    [
        (Ratio("p", "w", 2.0, at_least=2.0), True),
        (Ratio("p", "w", 1.99, at_least=2.0), False),
        (Ratio("p", "w", 1.2, at_most=1.2), True),
        (Ratio("p", "w", 1.21, at_most=1.2), False),
        (Ratio("p", "w", 9.0), None),
    ],
)
def test_a_ratio_reaches_its_target_or_not_or_has_none(ratio, reached):
    assert ratio.reached is reached


def test_a_ratio_needs_both_of_its_figures():
    findings = Findings()
    findings.add_ratio("drain", "a ÷ b", None, 5.0)
    findings.add_ratio("drain", "a ÷ b", 5.0, None)
    findings.add_ratio("drain", "a ÷ b", 5.0, 2.0, at_least=2.0)
    assert findings.ratios == [Ratio("drain", "a ÷ b", 2.5, at_least=2.0)]


def test_a_lost_job_and_one_done_twice_fail_the_check():
    check_tally("worker", 3, {"handled": 3, "distinct": 3, "repeated": 0})
    with pytest.raises(CheckError, match="different jobs handled: found 2, and it must be 3"):
        check_tally("worker", 3, {"handled": 2, "distinct": 2, "repeated": 0})
    with pytest.raises(CheckError, match="more than once: found 1"):
        check_tally("worker", 3, {"handled": 4, "distinct": 3, "repeated": 1})
    with pytest.raises(CheckError, match="jobs stored: found 4, and it must be 5"):
        demand("jobs stored", 4, 5)


def test_a_tally_tells_repeated_jobs_from_lost_ones_and_grows_with_their_numbers(capsys):
    tally = Tally(4)
    for number in (0, 1, 1, 3):
        tally.count(number)
    assert tally.sums() == {"handled": 4, "distinct": 3, "repeated": 1}
    assert tally.done.is_set()
    event = json.loads(capsys.readouterr().out)
    assert event["event"] == "handled"
    assert event["first_at"] <= event["at"]
    endless = Tally(None)
    endless.count(5_000_000)
    assert endless.sums() == {"handled": 1, "distinct": 1, "repeated": 0}


def test_the_table_has_every_figure_ratio_check_and_who_was_left_out():
    findings = Findings(environment={"cores": "2", "fsync": "on"}, left_out={"pgqueuer 1.6.0": "no [network]"})
    findings.figures.append(Figure("floor", "pgbench", "batches of 10", 2000, 12_345.6, Latencies(1.5, 9.25, 200)))
    findings.figures.append(Figure("drain", "reserve", "no-op jobs", 2000, 23_456.7, None, "concurrency 100"))
    findings.add_ratio("drain", "no-op jobs ÷ pgqueuer", 3.0, 2.0, at_least=2.0)
    findings.add_ratio("drain", "no-op jobs ÷ graphile-worker", 3.0, 2.0, at_least=1.0)
    findings.checks.append("nothing was lost")
    out = io.StringIO()
    print_findings(Console(file=out, width=160), findings, quick=True)
    text = out.getvalue()
    for words in ("12,346", "1.50", "9.25", "23,457", "concurrency 100", "1.50", "≥ 2", "no", "≥ 1", "yes"):
        assert words in text
    assert "a quick look, not a measurement" in text
    assert "left out: pgqueuer 1.6.0: no [network]" in text
    assert "checked: nothing was lost" in text
    document = json.loads(json.dumps(findings.as_document()))
    assert document["ratios"][0]["reached"] is False
    assert document["figures"][0]["latencies"]["p99_ms"] == 9.25


def test_without_options_all_parts_are_measured_in_full_against_all_peers():
    options = parse([])
    assert (options.only, options.peers, options.jobs, options.snapshot_seconds) == (PARTS, PEER_NAMES, 100_000, 300)
    assert {peer.name for peer in PEERS} == set(PEER_NAMES)


def test_quick_makes_small_what_is_not_given():
    options = parse(["--quick", "--jobs", "5000", "--only", "drain,floor", "--peers", "none"])
    assert (options.jobs, options.rounds, options.only, options.peers) == (5000, 1, ("floor", "drain"), ())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--only", "floor,roof"], "must be of floor, library, .*not 'roof'"),
        (["--only", "none"], "not 'none'"),
        (["--peers", "sidekiq"], "must be of pgqueuer, graphile-worker, procrastinate, not 'sidekiq'"),
        (["--jobs", "99"], "must be a whole number from 100 to 10000000, not '99'"),
        (["--jobs", "1e5"], "not '1e5'"),
        (["--rounds", "0"], "from 1 to 100"),
        (["--snapshot-seconds", "nan"], "must be a number of seconds from 1 to 86400"),
        (["--snapshot-seconds", "long"], "not 'long'"),
        (["--json", "/no such folder/figures.json"], "there is no folder /no such folder"),
        (["--fast"], "unrecognized arguments: --fast"),
    ],
)
def test_a_wrong_option_is_refused_in_a_sentence(arguments, sentence, capsys):
    with pytest.raises(SystemExit) as ended:
        parse(arguments)
    assert ended.value.code == 2
    # argparse breaks no words, but may break the line between two.
    error = " ".join(capsys.readouterr().err.split())
    assert re.search(sentence, error)


def test_a_peer_that_cannot_be_installed_has_a_reason(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NotInstalledError, match="cannot be made: Not a directory"):
        install(PEERS[0], tmp_path / "file")


def test_an_environment_that_is_there_is_not_made_again(tmp_path):
    peer = PEERS[0]
    home = tmp_path / f"{peer.name}-{peer.version}"
    home.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        made = []
        patch.setattr("loadtest.jobs_environments._run", made.append)
        assert install(peer, tmp_path) == home
        before = len(made)
        assert install(peer, tmp_path) == home
    assert before == len(made) == 2
    assert peer.wheels[0] in made[1]


def test_every_contestant_is_pinned_and_has_its_driver(tmp_path):
    for each in (OURS, *PEERS):
        assert each.driver.is_file()
        assert all("==" in wheel for wheel in each.wheels)
        assert all("@" in module for module in each.modules)
        assert each.name == "reserve" or f"{each.version}" in " ".join([*each.wheels, *each.modules])
    assert command(PEERS[0], tmp_path)[0] == str(tmp_path / "venv" / "bin" / "python")
