"""A stack's engines as a program for Modal. Pure."""

from collections.abc import Iterator
from shlex import quote

from withstand.spec.mistake import wrong
from withstand.spec.stack import Stack
from withstand.stack.exports.container import OURS, Container, containers, dockerfile, refuse_own_address, wheel
from withstand.stack.exports.told import last, readme
from withstand.stack.exports.yaml import whole

_TOP = '''\
"""The stack {stack} on Modal: modal deploy {file}

Each engine has an address of its own, which whoever knows it can ask; a gateway with keys belongs in front.
"""

import os
import subprocess

import modal

app = modal.App({stack!r})
'''
_PYTHON = '_PYTHON = "RUN command -v python || ln -s $(command -v python3) /usr/local/bin/python"\n'
_VOLUME = "models = modal.Volume.from_name({volume!r}, create_if_missing=True)\n"

_ONE = """

@app.function(
    image={image}.entrypoint([]),
    {gpu}cpu={cores},
    volumes={volumes},
    secrets={secrets},
    min_containers={least},
    max_containers={most},
    scaledown_window={idle},
    timeout={timeout},
)
# Without this a container is given one request at a time, however many the engine could batch.
@modal.concurrent(max_inputs={inputs}, target_inputs={target})
@modal.web_server(port={port}, startup_timeout={ready})
def {name}() -> None:
    subprocess.Popen({argv}, env={{**os.environ, **{env}}})
"""


def modal(stack: Stack) -> dict[str, str]:
    """``modal_app.py``: a web server for each engine. The gateway stays where it is, in front of their addresses.

    Raises:
        SpecError: an engine cannot run there as it is described.
    """
    engines = [each for each in containers(stack) if not each.is_in_front]
    if not engines:
        raise wrong("engines", "Modal has nothing to run; all engines are remote")
    refuse_own_address(engines, "Modal")
    top = _TOP.format(stack=stack.name, file="modal_app.py")
    if any(each.image != OURS for each in engines):
        top += _PYTHON
    if any(each.volumes for each in engines):
        top += _VOLUME.format(volume=f"{stack.name}-models")
    app = top + "".join(_function(each, stack.name) for each in engines)
    return {"modal_app.py": app, **dockerfile(engines), **readme(_told(stack.name, engines))}


def _told(stack: str, engines: list[Container]) -> Iterator[str]:
    """What must be there before."""
    yield "Before `modal deploy modal_app.py`, in this folder:"
    if any(each.image == OURS for each in engines):
        yield f"- the wheel that Dockerfile takes: {wheel()} (CLONE is withstand's); Modal builds the image"
    if variables := sorted({variable for each in engines for variable in each.secrets}):
        yield f"- modal secret create {stack}-secrets " + " ".join(f"{variable}=…" for variable in variables)
    if names := sorted({last(path) for each in engines for path in each.volumes}):
        yield f"- the models at the top of the volume {stack}-models, each under its own name:"
        yield f"  modal volume create {stack}-models"
        yield from (f"  modal volume put {stack}-models {quote(name)} {quote(f'/{name}')}" for name in names)
    yield "Each engine has an address of its own, which the command prints."


def _image(name: str) -> str:
    """Modal wants a ``python`` on the path; one that it adds itself would stand before the engine's own."""
    if name == OURS:
        return 'modal.Image.from_dockerfile("Dockerfile")'
    return f"modal.Image.from_registry({name!r}, setup_dockerfile_commands=[_PYTHON])"


def _function(engine: Container, stack: str) -> str:
    deploy = engine.deploy
    card = f"{deploy.gpu or 'any'}:{deploy.gpus}"
    gpu = f"gpu={card!r},\n    " if deploy.gpus else ""
    # The volume has each model under its own name.
    folders = sorted({path.rpartition("/")[0] or "/" for path in engine.volumes})
    secret = f"[modal.Secret.from_name({f'{stack}-secrets'!r})]" if engine.secrets else "[]"
    return _ONE.format(
        image=_image(engine.image),
        gpu=gpu,
        cores=engine.cores,
        volumes="{" + ", ".join(f"{folder!r}: models" for folder in folders) + "}",
        secrets=secret,
        least=deploy.min_replicas,
        most=deploy.most_replicas,
        idle=max(2, whole(deploy.idle_s)),
        timeout=whole(deploy.longest_stream_s),
        inputs=2 * deploy.target_requests,
        target=deploy.target_requests,
        port=engine.process.port,
        ready=whole(engine.process.upkeep.ready_s),
        name=engine.name.replace("-", "_"),
        argv=list(engine.argv),
        env=engine.env,
    )
