"""All queries of the store: functions that return a Select, and frames of them."""
