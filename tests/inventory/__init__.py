"""The inventory on the real database: what each call answers, each invariant alone, and races as named steps."""
