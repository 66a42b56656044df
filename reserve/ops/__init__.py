"""Operating the service: sweeps, rescues, audit, import, demo. Composes inventory and jobs; knows nothing of HTTP."""
