"""The dashboard's pages, one module each with a function `show`."""
