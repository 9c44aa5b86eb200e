"""What must be there before an export can be applied, as lines of its README. Pure."""

from collections.abc import Iterable, Mapping
from shlex import quote

README = "README.txt"


def readme(lines: Iterable[str]) -> dict[str, str]:
    """The file of that name."""
    return {README: "\n".join(lines) + "\n"}


def not_there(place: str, left_out: Mapping[str, str]) -> list[str]:
    """A sentence for each part of a stack that a place does not get, with what to do instead."""
    return [f"Not exported to {place}: {part}; {instead}." for part, instead in left_out.items()]


def kept(stack: str, keys: Iterable[str], models: Iterable[str], files: Iterable[str] = ()) -> list[str]:
    """The Secret and the claim of a cluster of Kubernetes. ``models``: paths, of which the claim has the last names.

    ``files``: paths of those that the Secret has, under their last names.
    """
    lines = []
    secrets = [f"--from-literal={key}=…" for key in sorted(set(keys))]
    secrets += [f"--from-file={quote(f'{last(path)}={path}')}" for path in files]
    if secrets:
        lines.append(f"- kubectl create secret generic {stack}-secrets " + " ".join(secrets))
    if names := sorted({last(path) for path in models}):
        lines += [
            f"- a PersistentVolumeClaim {stack}-models that many pods may read, and that holds {', '.join(names)};",
            *(
                f"  from a pod that has it at /upload: kubectl cp {quote(name)} POD:{quote(f'/upload/{name}')}"
                for name in names
            ),
        ]
    return lines


def last(path: str) -> str:
    """A model's own name, under which a volume has it."""
    return path.rstrip("/").rpartition("/")[2]
