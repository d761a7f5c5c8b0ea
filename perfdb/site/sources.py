"""A published page as it was read, with an anchor on every line; and a release's head."""

from perfdb.site.addresses import Address
from perfdb.site.data import ReleasePage, SourcePage
from perfdb.site.markup import Html, joined, tag


def listing(source: SourcePage, _address: Address) -> Html:
    """The text with numbered lines; #L7 is line 7."""
    lines = [
        joined((tag("span", (tag("i", str(number)), line), id=f"L{number}"), Html("\n")))
        for number, line in enumerate(source.text.splitlines(), start=1)
    ]
    read = tag("p", ("Read from ", tag("code", source.path), f", SHA-256 {source.sha256}."))
    return joined((read, tag("pre", lines, class_="perf-source")))


def release_head(release: ReleasePage, _address: Address) -> Html:
    """The containers of a release, and what its labels mean."""
    origins = {result.origin for result in release.results}
    said = {
        "published": "Published rows show the figures as they were printed; the line of the page "
        "that they are from is behind them.",
        "measured": "Measured rows are from runs; of several of one case the median one is shown.",
    }
    labels = [tag("p", said[origin]) for origin in sorted(origins)]
    containers = ", ".join(release.containers)
    container = [tag("p", ("Container: ", tag("code", containers)))] if containers else []
    return joined([*container, *labels])
