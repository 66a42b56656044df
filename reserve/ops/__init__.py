"""Operating the service: sweeps, audit, import, the demo. Composes the inventory; knows nothing of HTTP handlers."""
