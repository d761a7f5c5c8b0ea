"""Outputs as lines that a diff shows well: figures in one text, words in another."""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from bs4 import BeautifulSoup
from bs4.element import Tag

WORDS = ("notes", "withheld", "message", "suggestion", "reason", "description", "note", "failed_a",
         "failed_b", "failed", "restated_note")  # fmt: skip
"""Keys and columns whose values are sentences."""
PLACE = ("rule", "path", "line", "model", "system", "release", "source", "source_line")

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


def compact(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def figures(value: Json, indent: str = "") -> Iterator[str]:
    """JSON as lines: an object's plain values in one, its lists and objects below. No nulls."""
    if isinstance(value, list) and any(isinstance(one, dict | list) for one in value):
        for one in value:
            yield from figures(one, indent + "- ")
    elif isinstance(value, dict):
        kept = {name: one for name, one in value.items() if one is not None}
        plain = {name: worded(name, one) for name, one in kept.items() if not nested(one)}
        yield indent + compact(plain)
        for name in sorted(name for name in kept if nested(kept[name])):
            if name != "notes":
                yield f"{indent}  {name}:"
                yield from figures(kept[name], indent + "  ")
    else:
        yield indent + compact(value)


def nested(value: Json) -> bool:
    """Whether it takes lines of its own."""
    if isinstance(value, dict):
        return any(isinstance(one, dict | list) for one in value.values()) or len(value) > 8
    return isinstance(value, list) and any(isinstance(one, dict | list) for one in value)


def worded(name: str, value: Json) -> Json:
    """Of a sentence only that it is there."""
    return bool(value) if name in WORDS else value


def words(value: Json, place: str = "") -> Iterator[str]:
    """Every sentence of JSON, after what it is about."""
    if isinstance(value, list):
        for one in value:
            yield from words(one, place)
    elif isinstance(value, dict):
        here = " ".join(str(value[name]) for name in PLACE if value.get(name) is not None)
        for name, one in value.items():
            if name in WORDS and one and not nested(one):
                yield f"{here or place} {name}: {one}"
            else:
                yield from words(one, here or place)


def keys(value: Json, path: str = "") -> set[str]:
    """The path of every key."""
    if isinstance(value, list):
        return set().union(*(keys(one, f"{path}[]") for one in value)) if value else set()
    if isinstance(value, dict):
        inner = [keys(one, f"{path}.{name}") for name, one in value.items()]
        return {f"{path}.{name}" for name in value}.union(*inner)
    return set()


def rows(text: str) -> tuple[list[str], list[str]]:
    """Exported CSV: the figures of each row, the empty left out, and the sentences of each."""
    numbers, sentences = [], []
    for row in csv.DictReader(io.StringIO(text)):
        said = {name: row[name] for name in WORDS if row.get(name)}
        kept = {name: value for name, value in row.items() if value and name not in said}
        numbers.append("; ".join([f"{k}={v}" for k, v in kept.items()] + [f"+{k}" for k in said]))
        here = f"{row['source']}:{row['source_line']} {row['model']} {row['system']}"
        sentences += [f"{here} {name}: {value}" for name, value in said.items()]
    return numbers, sentences


def page(html: str) -> tuple[list[str], list[str], list[str]]:
    """The headings and tables of a page of the site, its other text, and where its links lead."""
    soup = BeautifulSoup(html, "html.parser")
    article = soup.find("article") or soup
    assert isinstance(article, Tag)
    links = sorted({str(a["href"]).split("#")[0] for a in article.find_all("a", href=True)})
    for gone in article.select("script, style, svg, template, .headerlink"):
        gone.decompose()
    tables = []
    for tag in article.find_all(["h1", "h2", "h3", "h4", "label", "table"]):
        tables += table(tag) if tag.name == "table" else [f"{tag.name}: {flat(tag)}"]
    for tag in article.find_all(["h1", "h2", "h3", "h4", "label", "table"]):
        tag.decompose()
    prose = [" ".join(text.split()) for text in article.stripped_strings]
    return tables, prose, [link for link in links if link]


def table(tag: Tag) -> Iterable[str]:
    """A line for each row."""
    return [" | ".join(flat(cell) for cell in row.find_all(["th", "td"]))
            for row in tag.find_all("tr")]  # fmt: skip


def flat(tag: Tag) -> str:
    return " ".join(tag.get_text(" ").split())
