"""Named statements, one a file; the stem is the name. Read by `reserve.db.query`; holds no code."""
