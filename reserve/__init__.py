"""`reserve`: reserve stock, seats and quotas on PostgreSQL without ever overselling."""
