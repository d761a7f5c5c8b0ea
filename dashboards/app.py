"""The dashboard's table of pages. Streamlit runs this file once for every click."""

from pathlib import Path

import streamlit as st

from dashboards import data
from dashboards.views import compare, explore, runs, unready

ICON = Path(__file__).with_name("icon.png")

# Each page's address, title and function. No icons: Streamlit would fetch them from elsewhere.
PAGES = {
    "compare": ("Compare releases", compare.show),
    "explore": ("Explore results", explore.show),
    "runs": ("Look into runs", runs.show),
}


def main() -> None:
    """Show the page that the address names, or what stands in its way."""
    st.set_page_config(page_title="perfdb", page_icon=str(ICON), layout="wide")
    page = st.navigation(
        [st.Page(show, title=title, url_path=path) for path, (title, show) in PAGES.items()]
    )
    obstacle = data.obstacle()
    if obstacle is None:
        page.run()
    else:
        unready.show(obstacle)


main()
