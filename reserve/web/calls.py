"""Every call of the HTTP interface with its function and its documentation: what is routed is documented."""

from typing import Final

from reserve.web.call import Call
from reserve.web.hold_calls import HOLD_CALLS
from reserve.web.job_calls import JOB_CALLS
from reserve.web.lane_calls import LANE_CALLS
from reserve.web.pool_calls import POOL_CALLS
from reserve.web.service_calls import SERVICE_CALLS

CALLS: Final[tuple[Call, ...]] = (*POOL_CALLS, *HOLD_CALLS, *LANE_CALLS, *JOB_CALLS, *SERVICE_CALLS)
