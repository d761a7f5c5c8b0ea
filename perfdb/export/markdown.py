"""A Markdown pipe table, to paste into a page or an issue; empty where unknown."""

from perfdb.export.base import Table, text

NAME = "markdown"


def render(table: Table) -> bytes:
    """A header, a rule, and a line for each row; numbers stand at the right."""
    rule = ["---" if column.kind is str else "---:" for column in table.columns]
    rows = [[_escaped(text(cell)) for cell in row] for row in table.rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in [table.names, rule, *rows]).encode()


def _escaped(cell: str) -> str:
    return cell.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")
