"""Load from outside: programs that drive a running service over HTTP and judge what it answered."""
