"""The job lane: enqueueing, claiming, finishing, leases, looking after jobs, lanes."""
