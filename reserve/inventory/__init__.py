"""The inventory: pools, holds, adjustments, and the allocation that decides who gets what.

Knows neither HTTP nor settings files; callers above give it a `Database` and a function that renders answers.
"""
