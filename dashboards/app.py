"""The dashboard's table of pages. Streamlit runs this file once for every click."""

from pathlib import Path

import streamlit as st

from dashboards import data
from dashboards.choices import SAME_PAGE
from dashboards.findings import plain
from dashboards.views import compare, explore, runs

ICON = Path(__file__).with_name("icon.png")

# Each page's address, title and function. No icons: Streamlit would fetch them from elsewhere.
PAGES = {
    "compare": ("Compare releases", compare.show),
    "explore": ("Explore results", explore.show),
    "runs": ("Look into runs", runs.show),
}


def main() -> None:
    """Show the page that the address names, or why there is none and how to change it."""
    st.set_page_config(page_title="perfdb", page_icon=str(ICON), layout="wide")
    page = st.navigation(
        [st.Page(show, title=title, url_path=path) for path, (title, show) in PAGES.items()]
    )
    st.session_state[SAME_PAGE] = st.session_state.get("page") == page.url_path
    st.session_state["page"] = page.url_path
    if found := data.obstacle():
        st.title("Nothing to show yet")
        st.info(plain(found.sentence))
        st.write("These commands help. Then reload this page.")
        st.code(found.commands, language="bash")
    else:
        page.run()


main()
