"""The calls about the service itself, as they are routed and documented."""

from typing import Final

from reserve import errors
from reserve.web import examples, health, shapes
from reserve.web.call import BUSY, Call, Success

SERVICE_CALLS: Final = (
    Call(
        "GET",
        "/health/live",
        health.live,
        "Service",
        "Whether the service lives",
        "Does not ask the database.",
        (Success(200, "It lives.", shapes.HealthShape, examples.LIVE),),
        (errors.InvalidRequest,),
    ),
    Call(
        "GET",
        "/health/ready",
        health.ready,
        "Service",
        "Whether the service can work",
        "Asks the database, and whether it has the schema of this program.",
        (Success(200, "It is ready.", shapes.HealthShape, examples.READY),),
        (errors.InvalidRequest, errors.NotMigrated, errors.SchemaTooNew, errors.SettingsError, *BUSY),
    ),
    Call(
        "GET",
        "/problems/{code}",
        health.problem_kind,
        "Service",
        "What a problem type means",
        "The `type` of each problem document leads here.",
        (Success(200, "The problem type.", shapes.ProblemKindShape, examples.PROBLEM_KIND),),
        (errors.InvalidRequest, errors.NotFound),
    ),
)
