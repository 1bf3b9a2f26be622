"""The operator's flags about images."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from novacron.cli.options import split
from novacron.core.quantity import parse_quantity

__all__ = ["image_options"]

F = TypeVar("F", bound=Callable[..., Any])


class Quantity(click.ParamType[str]):
    """An amount of bytes such as 64Gi."""

    name = "quantity"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check the text."""
        try:
            usable = parse_quantity(value) > 0
        except ValueError:
            usable = False
        if not usable:
            self.fail(f"{value!r} is not an amount of bytes such as 64Gi", param, ctx)
        return value


def _listed(flag: str, words: str) -> Callable[[F], F]:
    return click.option(
        flag, default="", callback=lambda _context, _parameter, value: split(value), help=words
    )


_OPTIONS = (
    _listed("--image-allow", "Addresses, networks and hosts that are not public but may have "
                             "images all the same, with commas."),
    _listed("--image-deny", "Addresses, networks and hosts that images never come from."),
    click.option("--image-max-size", type=Quantity(), default="64Gi", show_default=True,
                 help="The largest image that is taken, as it comes and converted."),
    click.option("--image-max-disk", type=Quantity(), default="2Ti", show_default=True,
                 help="The largest disk that an image may say it is."),
    click.option("--image-catalogue", default="novacron-images", show_default=True,
                 help="The ConfigMap with more images for marketplace://, in --namespace."),
    click.option("--image-s3-secret", default="novacron-s3", show_default=True,
                 help="The Secret for s3://, in --namespace; without it, anonymously from AWS."),
    _listed("--image-claim-namespaces", "Namespaces whose machines may have images from their "
                                        "own PersistentVolumeClaims; * is all."),
    _listed("--image-shared-namespaces", "Namespaces whose PersistentVolumeClaims every machine "
                                         "may have images from."),
    _listed("--image-file-namespaces", "Namespaces whose machines may have file:// images, any "
                                       "file of their host."),
    click.option("--scratch-directory", type=click.Path(file_okay=False, path_type=Path),
                 help="Where images are converted to qcow2. Default: the system's."),
)  # fmt: skip


def image_options(command: F) -> F:
    """Give a command these flags."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
