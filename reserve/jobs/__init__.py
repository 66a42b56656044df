"""The job lane: queue, leases and lanes on the same claim as the inventory, which it does not know.

Payloads are JSON and mean nothing here. What runs a job is the worker's or a client's.
"""
