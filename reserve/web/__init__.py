"""HTTP: reads requests strictly, calls the inventory, answers JSON or a problem. Owns no rule of the domain.

`app.create_app` puts it together; `calls.CALLS` lists every call with its function and its documentation.
"""
