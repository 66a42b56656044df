"""The tests: sentences about the service, on a real database, in any order."""
