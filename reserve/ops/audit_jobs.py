"""The audit of the job lane: each job is in one place, and is there as its place and state demand. Reads only.

Nearly all of it the constraints refuse as well; the audit looks in case that somebody has dropped them.
"""

from collections.abc import Callable

from reserve.ops.audit_reading import Pace, Progress, Reader, likely
from reserve.ops.differences import DIFFERENCES_MAX, Difference, Findings, What

_JOBS_FIRST, _JOBS_MAX = 256, 10_000


async def audit_jobs(reader: Reader, findings: Findings, progress: Callable[[Progress], None]) -> int:
    """Every job that there is when it begins, ready, running, scheduled or finished, by id in pages; their number.

    A job moves between the tables while the audit goes on, but its id stays, and one snapshot has it in one place.
    """
    bounds = await reader.one("audit_job_bounds", {})
    if bounds["last"] is None:
        return 0
    pace = Pace(_JOBS_FIRST, _JOBS_MAX)
    jobs = 0
    after = bounds["before_first"]
    while after < bounds["last"]:
        parameters = {
            "after": after,
            "last": bounds["last"],
            "limit": pace.size,
            "differences_max": DIFFERENCES_MAX,
        }
        rows = await reader.rows("audit_job", parameters, pace=pace)
        page = rows[0]
        shown = [
            Difference(None, What(row["what"]), row["stored"], row["recomputed"], job=row["job_id"])
            for row in rows
            if row["what"] is not None
        ]
        findings.add(shown, unseen=page["found_count"] - len(shown))
        jobs += page["jobs"]
        after = page["last"]
        progress(Progress("jobs", jobs, likely(bounds["jobs"], jobs)))
    return jobs
