"""The database floor: connections, named statements, the claim, migrations, the embedded server.

Knows PostgreSQL and nothing of holds or pools. The only floor that sees psycopg's errors.
"""
