"""`{command-line}`: the help of every perfdb command, asked of the commands themselves."""

import click
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata

import perfdb.cli
from perfdb import __version__

WIDTH = 78


class CommandLineDirective(SphinxDirective):
    """A section for each command and each of its subcommands, with its help."""

    def run(self) -> list[nodes.Node]:
        """The sections, in the order of `perfdb --help`."""
        self.env.note_dependency(__file__)
        return [_section(name, text) for name, text in _helps(perfdb.cli.cli, "perfdb", None)]


def _helps(
    command: click.Command, name: str, parent: click.Context | None
) -> list[tuple[str, str]]:
    """The name and help of a command, and of all below it."""
    context = click.Context(command, parent, name, **command.context_settings)
    context.terminal_width = WIDTH
    found = [(context.command_path, command.get_help(context))]
    if isinstance(command, click.Group):
        for one in command.list_commands(context):
            below = command.get_command(context, one)
            if below is not None:
                found += _helps(below, one, context)
    return found


def _section(name: str, text: str) -> nodes.section:
    section = nodes.section("", nodes.title(text=name), ids=[nodes.make_id(name)])
    section += nodes.literal_block(text, text, language="text")
    return section


def setup(app: Sphinx) -> ExtensionMetadata:
    """Make the directive known."""
    app.add_directive("command-line", CommandLineDirective)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
