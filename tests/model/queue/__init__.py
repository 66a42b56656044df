"""The queue held against a small model: random histories of the job lane, one operation at a time, with two workers.

`expected` says what must come of each operation (a dict of jobs, no SQL), `seen` reads what the database holds, past
the service, and moves time, `wishes` draws what is asked.
"""
