"""Idempotency: fingerprints, what is stored under a key, and pruning."""
