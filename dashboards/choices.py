"""What is chosen on a page: kept in its address, which a link and the browser's Back bring back."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboards.findings import plain

SAME_PAGE = "same page"
"""Under this name the session has whether the page is the one that it showed before."""


ALL = "all"
"""What the address says where a filter that has a first choice lets everything through."""


def one_of(
    label: str, options: Sequence[str], first: str, key: str, title: Callable[[str], str] = str
) -> str:
    """`remembered`, for a name of the address that is a filter of several choices elsewhere."""
    return remembered(label, options, first, f"one {key}", title)


def remembered(
    label: str, options: Sequence[str], first: str, key: str, title: Callable[[str], str] = str
) -> str:
    """A select box whose choice is always in the address, the default too.

    `bind="query-params"` keeps a default out of the address, and a link to the page would show
    another release when the default has moved on. A warning is shown if a link names what
    is not among the options. `title` gives the text of an option.
    """
    if st.session_state.get(key) not in options or _has_moved(key):
        asked = st.query_params.get(_parameter(key))
        is_link = st.session_state.get(f"written {key}") != [asked]
        if asked and asked not in options and is_link:
            _warn_of_unknown(label, asked, f"{title(first)} is shown instead")
        st.session_state[key] = asked if asked in options else first
    chosen = st.selectbox(label, options, key=key, format_func=title, persist_state="session")
    _put_into_address(key, [chosen])
    return chosen


def remembered_some(
    label: str,
    titles: Mapping[str, str],
    key: str,
    place: DeltaGenerator | None = None,
    first: Sequence[str] = (),
) -> list[str]:
    """A box for several choices, which are kept in the address; nothing chosen means all.

    `titles` has the text of each option; a link may name it either way. A warning lists
    names in a link that are not options. `first`: what is chosen where nobody has chosen.
    """
    kept = None if _has_moved(key) else st.session_state.get(key)
    if kept is None:
        by_title = {title: name for name, title in titles.items()}
        asked = [by_title.get(name, name) for name in st.query_params.get_all(key)]
        asked = [] if asked == [ALL] else asked or list(first)
        kept = [name for name in asked if name in titles]
        for name in asked:
            if name not in titles:
                shown = "the others are shown" if kept else "all are shown"
                _warn_of_unknown(label, name, f"{shown} instead")
    st.session_state[key] = [name for name in kept if name in titles]
    chosen = (place or st).multiselect(
        label, list(titles), key=key, format_func=lambda name: titles[name], persist_state="session"
    )
    _put_into_address(key, chosen or ([ALL] if first else []))
    return chosen


def warn_of_others(key: str, options: Iterable[str]) -> None:
    """A warning where a link names a figure that is not among the options."""
    known = list(options)
    if (asked := st.query_params.get(key)) and asked not in known:
        st.warning(plain(f"There is no figure “{asked}”: it is one of {', '.join(known)}."))


def _warn_of_unknown(label: str, asked: str, shown: str) -> None:
    """No page shows what is withdrawn, though the store has it."""
    lacking = f"The store has no {label.lower()} “{asked}” with results that count"
    st.warning(plain(f"{lacking}; {shown}."))


def _has_moved(key: str) -> bool:
    """Whether the browser's Back or Forward has changed the address since a choice was put there.

    The links between pages empty the address, and choices last.
    """
    written: list[str] | None = st.session_state.get(f"written {key}")
    found = st.query_params.get_all(_parameter(key))
    is_own = bool(found) or bool(st.session_state.get(SAME_PAGE))
    return written is not None and found != written and is_own


def _put_into_address(key: str, chosen: list[str]) -> None:
    if st.query_params.get_all(_parameter(key)) != chosen:
        st.query_params[_parameter(key)] = chosen
    st.session_state[f"written {key}"] = chosen


def _parameter(key: str) -> str:
    return key.removeprefix("one ")
