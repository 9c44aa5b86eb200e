"""SGLang on a CPU without the packages that it imports but that compute nothing there.

For SGLang's environment: this file and ``sglang_on_cpu.pth`` beside it go into its ``site-packages``, so that every
Python there begins with it. ``sgl_kernel`` is made for GPUs, and PyPI's ``torchvision`` breaks beside a CPU build of
torch; SGLang imports both at its start, and for a text model on a CPU uses neither. Where they are not installed,
their modules can be imported all the same, and whatever is used of them says that it is not there.
"""

import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_ABSENT = ("sgl_kernel", "torchvision")


class _Nothing(type):
    """A class that can be named, inherited from, and asked for constants, but never called."""

    def __getattr__(cls, name: str) -> "_Nothing":
        if name.startswith("__"):
            raise AttributeError(name)
        return _Nothing(name, (), {"__module__": f"{cls.__module__}.{cls.__name__}"})

    def __call__(cls, *_: object, **__: object) -> object:
        raise NotImplementedError(f"{cls.__module__}.{cls.__name__} is not installed here: sglang_on_cpu stands for it")


class _Empty(ModuleType):
    """A module in which everything is found, and is nothing."""

    def __getattr__(self, name: str) -> _Nothing:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Nothing(name, (), {"__module__": self.__name__})


class _Absent(MetaPathFinder, Loader):
    """Asked last of all: whatever is really installed has been found before."""

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        if fullname.partition(".")[0] not in _ABSENT or _only_asked():
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Empty(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def _only_asked() -> bool:
    """Nobody imports: transformers asks by ``importlib.util.find_spec`` what is there, and shall hear the truth."""
    return sys._getframe(3).f_code.co_name == "find_spec"  # noqa: SLF001  only the caller tells the two apart


sys.meta_path.append(_Absent())
