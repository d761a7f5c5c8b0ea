"""Reads YAML as data with line numbers, and reports every field that is wrong with its line."""

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Final, TypeVar

from pydantic import BaseModel, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.constructor import ConstructorError, SafeConstructor
from ruamel.yaml.error import MarkedYAMLError, ReusedAnchorWarning, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from perfdb.errors import Diagnostic, InputError, suggestion

Place = tuple[str | int, ...]
"""The way to a value: ('matrix', 'num_gpus', 2)."""

Value = TypeVar("Value", bound=BaseModel)

MOST_VALUES: Final = 1 << 18
"""What a document may hold. With aliases, a few lines can mean billions of values."""

CHARACTERS_OF_A_VALUE: Final = 100
"""How much of a text counts as one value: an alias of a long text means all of it."""

MOST_MARKS: Final = 1 << 15
"""The ends of lines, commas, brackets and dashes of lists that a document may have.

A second reads 5,000 to 10,000 of them.
"""

MOST_DIGITS: Final = 1000
"""Of an integer; Python writes no more than 4,300 decimal digits."""

DEEPEST: Final = 100
"""Brackets in brackets: the time that each token takes grows with how many are open."""

MOST_UNKNOWN: Final = 100
"""How many unknown fields of a document get a message each."""

_PLAIN = (("bool",), ("int",), ("float",), ("str",))
_BRACKETS = re.compile(r"[\[\]{}]")
_MARKS = re.compile(r"[\n\r\x85\u2028\u2029,\[{]|[-?](?=[ \t])")
_OCTAL_OR_SIXTIES = re.compile(r"[-+]?0[0-7_]+$|.*:")
_INT, _FLOAT = "tag:yaml.org,2002:int", "tag:yaml.org,2002:float"


class _Constructor(SafeConstructor):
    """Booleans and dates of YAML 1.1, but not its octal and base-60 numbers.

    Those that YAML 1.1 reads as another number than everybody else stay text: 0100 (octal, 64)
    and 1:04 (sixties, 64).
    """

    def construct_object(self, node: Node, deep: bool = False) -> object:
        try:
            return super().construct_object(node, deep)
        except (TypeError, ValueError) as error:  # a list in a key; no date or number, but like one
            raise ConstructorError(problem=str(error), problem_mark=node.start_mark) from error

    def construct_mapping(self, node: MappingNode, deep: bool = False) -> object:
        try:
            return super().construct_mapping(node, deep)
        except TypeError as error:  # a list in a key of the document itself
            raise ConstructorError(problem=str(error), problem_mark=node.start_mark) from error

    def construct_number(self, node: ScalarNode) -> int | float | str:
        text = str(self.construct_scalar(node))
        if node.tag == _INT:
            if len(text) > MOST_DIGITS:
                raise ValueError(f"an integer of more than {MOST_DIGITS:,} digits")
            return text if _OCTAL_OR_SIXTIES.match(text) else int(self.construct_yaml_int(node))
        is_plain = ":" not in text and "." in text
        return float(self.construct_yaml_float(node)) if is_plain else text


for _tag in (_INT, _FLOAT):
    _Constructor.add_constructor(_tag, _Constructor.construct_number)


@dataclass(frozen=True)
class Document:
    """A YAML document: its content, the line of each value, and the keys that were repeated."""

    where: str
    content: object
    lines: Mapping[Place, int]
    repeated: tuple[Diagnostic, ...] = ()

    def line(self, place: Place) -> int | None:
        """The line of a value, or of the nearest thing that holds it."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place)

    def items(self) -> dict[str | int, "Document"]:
        """The items of a list, or the values of a mapping, each as a document of its own."""
        lines: dict[str | int, dict[Place, int]] = {}
        for place, line in self.lines.items():
            lines.setdefault(place[0] if place else "", {})[place[1:]] = line
        content = self.content
        named: dict[str | int, object] = {}
        if isinstance(content, Mapping):
            named = {str(key): value for key, value in content.items()}
        elif isinstance(content, list):
            named = dict(enumerate(content))
        return {key: Document(self.where, it, lines.get(key, {})) for key, it in named.items()}

    def problem(self, place: Place, message: str, remedy: str | None = None) -> Diagnostic:
        """A problem with the value at a place."""
        field = ".".join(map(str, place)) or None
        return Diagnostic(self.where, message, field=field, line=self.line(place), remedy=remedy)


@dataclass(frozen=True)
class Unreadable:
    """A text that is not one YAML document, and why."""

    problems: tuple[Diagnostic, ...]


def parse(where: str, text: str, *, keep_last: bool = False) -> Document | Unreadable:
    """The document in a text; a repeated key is a problem, not a silent choice.

    `keep_last`: the last value of a repeated key is kept, as most loaders do.
    """
    yaml = YAML(typ="safe", pure=True)  # the library in C aborts on a hundred thousand `[`
    yaml.Constructor = _Constructor
    yaml.version = (1, 1)
    yaml.allow_duplicate_keys = True  # reported below, each with its line
    try:
        with warnings.catch_warnings(action="ignore", category=ReusedAnchorWarning):
            node = None if (faults := _too_long(where, text)) else yaml.compose(text)
        lines: dict[Place, int] = {}
        faults = faults or _faults(where, node)
        if node is None or faults:
            return Unreadable(faults)
        repeated = tuple(_repeated(where, *one) for one in _mark(node, (), lines))
        if repeated and not keep_last:
            return Unreadable(repeated)
        return Document(where, yaml.constructor.construct_document(node), lines, repeated)
    except ReaderError as error:
        return Unreadable((Diagnostic(where, f"not YAML: {error.reason}"),))
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        return Unreadable((Diagnostic(where, f"not YAML: {error.problem}", line=line),))
    except (YAMLError, ValueError, RecursionError) as error:
        return Unreadable((Diagnostic(where, f"not YAML: {error}"),))


def _too_long(where: str, text: str) -> tuple[Diagnostic, ...]:
    if (marks := len(_MARKS.findall(text))) > MOST_MARKS:
        message = f"{marks:,} newlines, commas, brackets and dashes, more than {MOST_MARKS:,}"
        return (Diagnostic(where, message, remedy="make it several files"),)
    open_ = 0
    for bracket in _BRACKETS.findall(text):
        # What closes none, as in a comment, makes up for none that is opened.
        open_ = open_ + 1 if bracket in "[{" else max(0, open_ - 1)
        if open_ > DEEPEST:
            message = f"more than {DEEPEST} brackets in one another"
            return (Diagnostic(where, message, remedy="close them"),)
    return ()


def _faults(where: str, node: Node | None) -> tuple[Diagnostic, ...]:
    """Why a document is not read, whatever its keys."""
    if node is None:
        return (Diagnostic(where, "the file is empty", line=1),)
    if _num_values(node, {}) > MOST_VALUES:
        message = (
            f"more than {MOST_VALUES:,} values or {MOST_VALUES * CHARACTERS_OF_A_VALUE:,} "
            f"characters, with what its aliases (*) stand for"
        )
        return (Diagnostic(where, message, remedy="write out what they stand for"),)
    return ()


def _num_values(node: Node, known: dict[int, int]) -> int:
    """How many values a node expands to; an alias expands to all that its anchor does."""
    if id(node) not in known:
        known[id(node)] = MOST_VALUES  # until it is known: what holds itself has no end
        held = 0
        if isinstance(node, ScalarNode):
            held = len(node.value) // CHARACTERS_OF_A_VALUE
        if isinstance(node, SequenceNode):
            held = sum(_num_values(item, known) for item in node.value)
        if isinstance(node, MappingNode):
            held = sum(_num_values(one, known) for pair in node.value for one in pair)
        known[id(node)] = 1 + held
    return known[id(node)]


def _repeated(where: str, place: Place, line: int) -> Diagnostic:
    field = ".".join(map(str, place))
    return Diagnostic(where, "given twice", field=field, line=line, remedy="keep one of them")


def _mark(node: Node, place: Place, lines: dict[Place, int]) -> list[tuple[Place, int]]:
    """Note the line of every value below a node; return the repeated keys; the last is kept."""
    lines[place] = node.start_mark.line + 1
    twice: list[tuple[Place, int]] = []
    if isinstance(node, SequenceNode):
        for index, item in enumerate(node.value):
            twice += _mark(item, (*place, index), lines)
    if isinstance(node, MappingNode):
        for key, value in node.value:
            inner = (*place, str(key.value))
            if inner in lines:
                twice.append((inner, key.start_mark.line + 1))
            twice += _mark(value, inner, lines)
            lines[inner] = key.start_mark.line + 1
        node.value = [*{str(key.value): (key, value) for key, value in node.value}.values()]
    return twice


def text_of(path: Path) -> str:
    """The text of a file. Raises InputError where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(Diagnostic(str(path), f"cannot be read: {error}")) from error


def list_of(where: str, text: str, name: str) -> Document | None:
    """A file that is one list, as a document with that list as its only field.

    None where it has nothing but comments. Raises InputError with every problem.
    """
    if all(line.lstrip().startswith("#") or not line.strip() for line in text.splitlines()):
        return None
    parsed = parse(where, text)
    if isinstance(parsed, Unreadable):
        raise InputError(parsed.problems)
    lines = {(name, *place): line for place, line in parsed.lines.items()}
    return Document(where, {name: parsed.content}, lines)


def validate(document: Document, kind: type[Value]) -> Value | list[Diagnostic]:
    """The document as a checked value, or everything that is wrong with it."""
    if not isinstance(document.content, Mapping):
        return [document.problem((), f"expected fields, found {_name_of(document.content)}")]
    try:
        return kind.model_validate(document.content)
    except ValidationError as error:
        details = error.errors(include_url=False)
        unknown = [one["loc"] for one in details if one["type"] == "extra_forbidden"]
        rest = unknown[MOST_UNKNOWN:]
        summarized = set(rest)
        found = [
            _no_such_field(document, one["loc"], kind)
            if one["type"] == "extra_forbidden"
            else _problem(document, one["loc"], one["type"], one["msg"])
            for one in details
            if one["loc"] not in summarized
        ]
        if rest:
            message = f"no such field, nor are {len(rest) - 1:,} after it"
            found.append(document.problem(rest[0], message, "remove them"))
        return list(dict.fromkeys(found))


def checked(
    document: Document | Unreadable, kind: type[Value], error: type[InputError] = InputError
) -> Value:
    """The document as a checked value. Raises the error with everything that is wrong with it."""
    if isinstance(document, Unreadable):
        raise error(document.problems)
    found = validate(document, kind)
    if isinstance(found, list):
        raise error(found)
    return found


def _no_such_field(document: Document, place: Place, kind: type[BaseModel]) -> Diagnostic:
    remedy = suggestion(str(place[-1]), kind.model_fields) if len(place) == 1 else "remove it"
    return document.problem(place, "no such field", remedy)


def _problem(document: Document, place: Place, what: str, message: str) -> Diagnostic:
    if what == "missing":
        return document.problem(place, "is required and missing", "add it")
    value, rest = _at(document.content, place)
    if rest in _PLAIN:  # one of the kinds that it may be, and is not: pydantic reports each
        plain = "write a number, a text, true or false"
        return document.problem(place[:-1], f"cannot be {value!r}", plain)
    if what in ("tuple_type", "list_type"):
        listed = f"write [{value}]" if isinstance(value, str) else None
        return document.problem(place, f"expected a list, found {value!r}", listed)
    found = "" if isinstance(value, Mapping | list) and value else f", found {value!r}"
    return document.problem(place, message.removeprefix("Value error, ") + found)


def _at(content: object, place: Place) -> tuple[object, Place]:
    """The value at a place, as far as the place can be followed, and the rest of the place."""
    for number, part in enumerate(place):
        match content, part:
            case Mapping(), _ if part in content:
                content = content[part]
            case list(), int(index) if index < len(content):
                content = content[index]
            case _:
                return content, place[number:]
    return content, ()


def _name_of(content: object) -> str:
    return "a list" if isinstance(content, list) else f"the {type(content).__name__} {content!r}"


def dumped(value: object) -> str:
    """A value as a YAML document, its keys in their order."""
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.width = 10_000  # a command is copied as one line
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]  # its type is wrong
    written = StringIO()
    yaml.dump(value, written)
    return written.getvalue()
