"""A command group that imports a command's module when the command is called."""

import importlib
from collections.abc import Mapping

import click

__all__ = ["LazyGroup"]


class LazyGroup(click.Group):
    """A group whose commands are named by where they are written, as ``module:attribute``."""

    sources: Mapping[str, str]

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands without importing any."""
        return [*self.sources, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command."""
        source = self.sources.get(cmd_name)
        if source is None:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = source.partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command
