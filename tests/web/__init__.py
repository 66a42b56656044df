"""The HTTP interface, asked as a client asks it, over the real database."""
