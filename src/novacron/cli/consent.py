"""A question before what cannot be undone; whoever cannot be asked is told what to say."""

import sys

import click

from novacron.cli.failure import Failure

__all__ = ["agree"]


def agree(question: str, *, yes: bool) -> None:
    """Go on if the user agrees, or agreed beforehand; without a terminal nobody can be asked."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Failure(f"{question} There is no terminal to ask on: add --yes if so")
    click.confirm(question, abort=True)
