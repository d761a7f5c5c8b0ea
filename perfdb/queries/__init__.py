"""Every question that is asked of the store: functions that return a Select, and frames of them."""
