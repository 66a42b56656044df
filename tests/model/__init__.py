"""The service held against a small model: random histories, one operation at a time and several at once.

`operations` says what can be done, `stock` what must come of it (dicts, no SQL), `seen` reads what the database holds,
`agreement` compares the two, `explain` finds an order in which operations that ran at once make sense.
"""
