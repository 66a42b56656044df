"""Tests of the services, the audit, the import and the demo."""
