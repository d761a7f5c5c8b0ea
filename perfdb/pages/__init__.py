"""Published performance pages: what they are written in, and what stands in them.

`perfdb.pages.reader` reads one, and has the table of markups.
"""
