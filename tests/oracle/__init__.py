"""What perfdb makes of all real inputs, recorded once and compared after every change.

`python -m tests.oracle check` compares with tests/data/oracle/; `record` writes it anew.
"""
