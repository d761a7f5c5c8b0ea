"""What every page shows while there is nothing to show: why, and how to change it."""

import streamlit as st

from dashboards.data import Obstacle


def show(obstacle: Obstacle) -> None:
    """The reason in a sentence, and the commands that help."""
    st.title("Nothing to show yet")
    st.info(obstacle.sentence)
    st.write("These commands help. Then reload this page.")
    st.code(obstacle.commands, language="bash")
