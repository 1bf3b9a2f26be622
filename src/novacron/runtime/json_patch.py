"""The difference of two JSON documents as a JSON patch (RFC 6902)."""

import orjson

__all__ = ["diff"]

Operation = dict[str, object]


def diff(before: object, after: object) -> list[Operation]:
    """Return the operations that turn one document into the other.

    Maps are compared key by key. A list that differs is replaced whole: positions in lists shift
    while a patch is applied, and admission patches rarely touch a long one.
    """
    operations: list[Operation] = []
    if not _same(before, after):
        _change(before, after, "", operations)
    return operations


def _change(before: object, after: object, path: str, operations: list[Operation]) -> None:
    if isinstance(before, dict) and isinstance(after, dict):
        _change_map(before, after, path, operations)
    else:
        operations.append({"op": "replace", "path": path, "value": after})


def _change_map(
    before: dict[str, object], after: dict[str, object], path: str, operations: list[Operation]
) -> None:
    for key, value in before.items():
        if key not in after:
            operations.append({"op": "remove", "path": _joined(path, key)})
        elif not _same(value, after[key]):
            _change(value, after[key], _joined(path, key), operations)
    for key, value in after.items():
        if key not in before:
            operations.append({"op": "add", "path": _joined(path, key), "value": value})


def _same(before: object, after: object) -> bool:
    if type(before) is not type(after):
        return False  # to Python 1, 1.0 and True are equal, to JSON they are not
    if isinstance(before, (dict, list)):
        # For the same reason; and writing it out is faster than walking through it.
        return _written(before) == _written(after)
    return before == after


def _written(value: object) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _joined(path: str, key: str) -> str:
    return f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
