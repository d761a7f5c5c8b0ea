"""The dashboard's table of pages. Streamlit runs this file once for every click."""

from pathlib import Path

import streamlit as st

from dashboards import data
from dashboards.choices import SAME_PAGE
from dashboards.findings import plain
from dashboards.views import (
    compare,
    explore,
    findings,
    history,
    mine,
    overview,
    runs,
    scaling,
    whatif,
)

ICON = Path(__file__).with_name("icon.png")

# By section each page's address, title and function. No icons: Streamlit would fetch them from
# elsewhere.
PAGES = {
    "Releases": {
        "": ("Overview", overview.show),
        "compare": ("Compare", compare.show),
        "explore": ("Explore", explore.show),
    },
    "One by one": {
        "model": ("Model", history.show_model),
        "system": ("System", history.show_system),
        "scaling": ("Scaling", scaling.show),
        "runs": ("Run", runs.show),
        "findings": ("Findings", findings.show),
    },
    "Yours": {
        "what-if": ("What-if", whatif.show),
        "mine": ("Mine", mine.show),
    },
}


def main() -> None:
    """Show the page that the address names, or why there is none and how to change it."""
    st.set_page_config(page_title="perfdb", page_icon=str(ICON), layout="wide")
    page = st.navigation(
        {
            section: [
                st.Page(show, title=title, url_path=path or None, default=not path)
                for path, (title, show) in pages.items()
            ]
            for section, pages in PAGES.items()
        },
        expanded=True,
    )
    st.session_state[SAME_PAGE] = st.session_state.get("page") == page.url_path
    st.session_state["page"] = page.url_path
    if not st.user.get("is_logged_in", True):  # False where secrets.toml has a section [auth]
        st.title("perfdb")
        st.button("Log in", on_click=st.login)
    elif found := data.obstacle():
        st.title("Nothing to show yet")
        st.info(plain(found.sentence))
        st.write("These commands help. Then reload this page.")
        st.code(found.commands, language="bash")
    else:
        page.run()


main()
