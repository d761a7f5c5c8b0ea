"""Makes a recipe of a framework's own configuration, which the recipe carries unchanged."""

from collections.abc import Mapping
from dataclasses import replace

from perfdb import yamlfile
from perfdb.errors import Diagnostic, RecipeError
from perfdb.recipe import automodel
from perfdb.recipe.check import faults
from perfdb.recipe.load import unknown_names
from perfdb.recipe.model import Recipe
from perfdb.yamlfile import Document

CARRIED = "framework_config"
HEAD = "# yaml-language-server: $schema=../recipe.schema.json"


def wrapped(where: str, text: str, others: Document) -> str:
    """The text of a recipe that carries AutoModel's YAML.

    `others` are the fields that the YAML leaves open, the name of the recipe among them. Raises
    RecipeError with everything that is wrong with either.
    """
    stated = automodel.read(where, text)
    if isinstance(stated, list):
        raise RecipeError(stated)
    others = replace(others, lines={})  # of a command line, which has none
    own = others.content if isinstance(others.content, Mapping) else {}
    problems = [
        others.problem((name,), f"{where} says {value}", "leave it out")
        for name, value in stated.fields.items()
        if name in own and own[name] != value
    ]
    fields = {**stated.fields, **own}
    given = yamlfile.validate(Document(others.where, fields, {}), Recipe)
    problems += given if isinstance(given, list) else unknown_names(others, own, ())
    if problems or isinstance(given, list):
        raise RecipeError(problems)
    if broken := faults(given):
        raise RecipeError(
            stated.problem(one.field, one.message, one.remedy)
            if one.field in fields
            else Diagnostic(where, "is not in it", one.field, remedy=f"add --set {one.field}=…")
            for one in broken
        )
    named = {name: fields[name] for name in Recipe.model_fields if name in fields}
    made = f"{HEAD}\n{yamlfile.dumped(named)}{CARRIED}: {_block(text)}"
    document = yamlfile.parse(where, made)
    if not isinstance(document, Document) or not isinstance(document.content, Mapping):
        raise RecipeError([Diagnostic(where, "cannot be carried in a recipe")])
    if document.content[CARRIED] != text:
        fault = "has line ends that YAML does not keep"
        raise RecipeError([Diagnostic(where, fault, remedy="save it with plain line feeds")])
    return made


def _block(text: str) -> str:
    """A text as a literal block of YAML, whatever it begins and ends with."""
    end = "+" if text.endswith("\n") else "-"
    return f"|2{end}\n" + "".join(f"  {line}" for line in text.splitlines(keepends=True))
