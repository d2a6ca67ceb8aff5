"""Spark itself: its session, and the server of Spark Connect."""
