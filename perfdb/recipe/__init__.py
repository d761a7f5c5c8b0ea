"""Recipes: what a person writes, read and checked, and expanded to cases."""

from perfdb.recipe.expand import RunSpec
from perfdb.recipe.load import RecipeFile, load
from perfdb.recipe.model import FRAMEWORKS, Recipe, schema
from perfdb.recipe.wrap import wrapped

__all__ = ["FRAMEWORKS", "Recipe", "RecipeFile", "RunSpec", "load", "schema", "wrapped"]
