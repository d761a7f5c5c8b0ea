"""Find numbers that cannot be true: rules over results, and arithmetic claims in documents.

`perfdb.audit.check` applies the rules, of which `perfdb.audit.rules` has the table.
"""
