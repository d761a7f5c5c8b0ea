"""Find numbers that cannot be true: rules over results, and arithmetic claims in documents.

`perfdb.audit.check` has the table of the rules and applies them.
"""
