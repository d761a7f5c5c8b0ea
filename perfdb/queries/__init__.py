"""The queries of the store: functions that return a Select, and readers of results."""
