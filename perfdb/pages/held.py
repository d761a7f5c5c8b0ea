"""What a text says of the rows below it, and how long it holds."""

from dataclasses import asdict, dataclass, field
from typing import Final

from perfdb.pages import names, unlisted
from perfdb.pages.outline import Said
from perfdb.pages.releases import Whose
from perfdb.record import Frozen, Task


class Recipe(Frozen):
    """A precision that a title or a statement says, and the rest of what held there."""

    name: str
    system: str | None = None
    """Also a GPU."""
    model: str | None = None
    task: Task | None = None


class Statement(Frozen):
    """What a text says. None: nothing."""

    system: str | None = None
    no_system: str | None = None
    """Why rows without a system of their own are on none; empty where one is said."""
    beside_model: str | None = None
    """The GPU that a heading names, or that stands beside a model; several systems have it."""
    precision: str | None = None
    recipe: Recipe | None = None
    """What a plain FP8 is, where the row is of what the recipe was said of."""
    container: str | None = None
    model: str | None = None
    task: Task | None = None
    no_task: str | None = None
    """Why rows without a task of their own are of none; empty where a task is said."""
    not_measured: str | None = None
    """What tells that figures are projected, or the like."""
    framework: str | None = None
    release: str | None = None
    unclear: str | None = None
    """Why nobody can tell of which release rows are; empty where one is said."""
    backend: str | None = None

    @property
    def whose(self) -> Whose:
        """What is said of the framework, its release and container."""
        return Whose(self.framework, self.release, self.container)

    def then(self, nearer: "Statement") -> "Statement":
        """Both; where the nearer one says something, that holds, a system in place of a GPU too."""
        if nearer == _NOTHING:  # most lines
            return self
        whose = asdict(self.whose.then(nearer.whose))
        gpu = None if nearer.system else self.beside_model
        unclear = "" if nearer.system or nearer.beside_model else self.no_system
        said = {
            "beside_model": gpu,
            "no_system": unclear,
            **nearer.model_dump(exclude_none=True, exclude={"recipe"}),
            **whose,
            "recipe": self._recipe(nearer),
        }
        return self.model_copy(update=said)

    def _recipe(self, nearer: "Statement") -> Recipe | None:
        """The recipe that holds below both; a plain FP8 takes none back."""
        held, word = self.recipe, nearer.precision
        if word is None or (held and names.is_recipe_of(names.precision(word), held.name)):
            return held
        return nearer.recipe

    def below(self, above: "Statement") -> "Statement":
        """This with what holds where it is said; of several systems it states no recipe."""
        if self.recipe is None:
            return self
        at = above.then(self)
        on = at.system or at.beside_model
        recipe = Recipe(name=self.recipe.name, system=on, model=at.model, task=at.task)
        return self.model_copy(update={"recipe": None if at.no_system else recipe})


_NOTHING: Final = Statement()
_NOWHERE: Final = 10**9


@dataclass
class Sections:
    """What is said in headings alone, above the first task in a line, and all together."""

    headings: Statement = field(default_factory=Statement)
    above: Statement = field(default_factory=Statement)
    together: Statement = field(default_factory=Statement)
    begun: bool = False
    """Whether a line has named a task."""
    model_at: int = _NOWHERE
    system_at: int = _NOWHERE
    precision_at: int = _NOWHERE
    """How many tables stand above the line that named a model, a system or a precision last."""

    def heading(self, said: Statement, one: Said) -> None:
        """Take a heading: what it says, with what still holds, is said in headings alone again."""
        self._next_precision(said, one)
        self.headings = self.above = self.together = self.together.then(said.below(self.together))
        self.begun = False
        self.model_at = self.system_at = self.precision_at = _NOWHERE

    def line(self, said: Statement, one: Said) -> None:
        """What is named for the table above does not hold below another name that is not known."""
        if one.tables > self.model_at and not said.model and unlisted.is_model(one):
            self.together = self.together.model_copy(update={"model": None})
        is_on = said.system or said.beside_model or said.no_system
        if one.tables > self.system_at and not is_on and unlisted.is_machine(one):
            why = f"the text says {one.text!r}, which is no system of the catalogue"
            said = said.then(Statement(no_system=why))
        self._next_precision(said, one)
        self.precision_at = one.tables if said.precision else self.precision_at
        self.model_at = one.tables if said.model else self.model_at
        self.system_at = one.tables if is_on else self.system_at
        self.together = self.together.then(said.below(self.together))
        self.above = self.above if self.begun else self.together

    def _next_precision(self, said: Statement, one: Said) -> None:
        """The recipe that a line states of the table above is none of the FP8 below it."""
        if one.tables > self.precision_at and said.precision:
            held = {"precision": self.headings.precision, "recipe": self.headings.recipe}
            self.together = self.together.model_copy(update=held)

    def task(self, said: Statement, *, titled: bool) -> None:
        """A task in a line: below a title within a section the section's own lines hold, too."""
        kept = Statement.model_validate(asdict(self.together.whose))
        self.together = (self.above if titled else self.headings).then(kept).then(said)
        self.begun = True
