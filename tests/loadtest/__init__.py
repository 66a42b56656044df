"""Tests of the load programs: reading order files, deciding, and whole replays against a live service."""
