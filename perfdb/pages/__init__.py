"""Published pages: from their text to the results that they hold (`perfdb.pages.reader`)."""
