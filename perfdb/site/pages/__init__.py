"""The kinds of pages of the site."""
