"""The database floor: the claim and its plans, the constraints, migrations, connections, errors."""
