"""Objects of others' kinds held against their CRDs.

Those that ``WITHSTAND_CRDS`` names (a folder of CRD files: prometheus-operator's, Gateway API's, its inference
extension's, KubeRay's) are the real ones; without it, what they require of the fields that we write is known here.
"""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from crds import Schema, faults, schemas
from withstand.spec.stack import stack_of
from withstand.stack.exports.table import exported

ENGINE = {
    "kind": "vllm",
    "python": "/opt/vllm/bin/python",
    "model": "/models/Llama-8B",
    "env": {"HF_TOKEN": {"from_env": "HF_TOKEN"}},
    "deploy": {"gpus": 2, "gpu": "H100", "max_replicas": 3, "longest_stream_s": 300},
}
STACK = {"engines": {"a": ENGINE, "b": {**ENGINE, "model": "/models/b"}}, "gateway": {}, "agent": {}}
REAL = os.environ.get("WITHSTAND_CRDS")


def text(**more: Any) -> Schema:
    return {"type": "string", **more}


def whole(low: int, high: int) -> Schema:
    return {"type": "integer", "minimum": low, "maximum": high}


def table(required: str = "", **properties: Schema) -> Schema:
    return {"type": "object", "required": required.split(), "properties": properties}


def every(items: Schema, **more: Any) -> Schema:
    return {"type": "array", "items": items, **more}


def kind(spec: Schema) -> Schema:
    return table("spec", apiVersion=text(), kind=text(), metadata=table(), spec=spec)


ANY: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
LABELS: Schema = {"type": "object", "additionalProperties": text(maxLength=63)}
DURATION = text(pattern=r"^([0-9]{1,5}(h|m|s|ms)){1,4}$")
PORT = whole(1, 65535)
PATH = table("type", type=text(enum=["ReplaceFullPath", "ReplacePrefixMatch"]), replacePrefixMatch=text())
MATCH = table(path=table(type=text(enum=["Exact", "PathPrefix", "RegularExpression"]), value=text(pattern="^/")))
BACKEND = table("name", group=text(), kind=text(), name=text(), port=PORT)
POD = table("spec", spec=ANY)
HEAD = table("template", rayStartParams=LABELS, template=POD)
WORKER = table(
    "groupName template",
    groupName=text(),
    replicas=whole(0, 2**31 - 1),
    minReplicas=whole(0, 2**31 - 1),
    maxReplicas=whole(0, 2**31 - 1),
    rayStartParams=LABELS,
    template=POD,
)
CLUSTER = table(
    "headGroupSpec",
    rayVersion=text(),
    enableInTreeAutoscaling={"type": "boolean"},
    headGroupSpec=HEAD,
    workerGroupSpecs=every(WORKER),
)
KNOWN = {
    ("monitoring.coreos.com/v1", "PodMonitor"): kind(
        table(
            "selector",
            selector=table(matchLabels=LABELS),
            podMetricsEndpoints=every(table(port=text(), path=text(), interval=DURATION)),
        )
    ),
    ("inference.networking.k8s.io/v1", "InferencePool"): kind(
        table(
            "selector targetPorts endpointPickerRef",
            selector=table("matchLabels", matchLabels=LABELS),
            targetPorts=every(table("number", number=PORT), minItems=1, maxItems=8),
            endpointPickerRef=table(
                "name port",  # the port may only be missing where it is no Service
                name=text(),
                port=table("number", number=PORT),
                failureMode=text(enum=["FailOpen", "FailClose"]),
            ),
        )
    ),
    ("gateway.networking.k8s.io/v1", "HTTPRoute"): kind(
        table(
            parentRefs=every(table("name", name=text())),
            rules=every(
                table(
                    matches=every(MATCH),
                    filters=every(table("type", type=text(enum=["URLRewrite"]), urlRewrite=table(path=PATH))),
                    backendRefs=every(BACKEND),
                    timeouts=table(request=DURATION),
                )
            ),
        )
    ),
    ("ray.io/v1", "RayService"): kind(
        table(
            serveConfigV2=text(),
            rayClusterConfig=CLUSTER,
            rayClusterDeletionDelaySeconds=whole(0, 2**31 - 1),
        )
    ),
}


def objects() -> list[dict[str, Any]]:
    stack = stack_of(STACK, "chat")
    files = (exported(stack, "kubernetes", "front")["kubernetes.yaml"], exported(stack, "kuberay")["rayservice.yaml"])
    found = [each for file in files for each in yaml.safe_load_all(file)]
    return [each for each in found if (each["apiVersion"], each["kind"]) in KNOWN]


@pytest.mark.parametrize("one", objects(), ids=lambda one: f"{one['kind']}-{one['metadata']['name']}")
def test_an_object_is_what_its_crd_wants(one: dict[str, Any]) -> None:
    assert list(faults(one, KNOWN[one["apiVersion"], one["kind"]])) == []


@pytest.mark.skipif(REAL is None, reason="WITHSTAND_CRDS names no folder of CRDs")
@pytest.mark.parametrize("one", objects(), ids=lambda one: f"{one['kind']}-{one['metadata']['name']}")
def test_an_object_is_what_its_real_crd_wants(one: dict[str, Any]) -> None:
    assert REAL
    found = schemas(Path(REAL))
    assert list(faults(one, found[one["apiVersion"], one["kind"]])) == []


def test_all_kinds_are_there() -> None:
    kinds = [each["kind"] for each in objects()]
    assert {name: kinds.count(name) for name in kinds} == {
        "PodMonitor": 4,
        "InferencePool": 2,
        "HTTPRoute": 2,
        "RayService": 1,
    }


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("spec", "targetPorts"), [], "minItems 1"),
        (("spec", "targetPorts", 0, "number"), "8000", "is no integer"),
        (("spec", "endpointPickerRef", "failureMode"), "failOpen", "breaks enum"),
        (("spec", "endpointPicker"), {}, "endpointPicker is not known"),
        (("spec",), {}, "selector is missing"),
    ],
)
def test_what_is_wrong_is_found(path: tuple[Any, ...], value: Any, said: str) -> None:
    pool = next(each for each in objects() if each["kind"] == "InferencePool")
    *above, last = path
    inner: Any = pool
    for step in above:
        inner = inner[step]
    inner[last] = value
    assert said in "; ".join(faults(pool, KNOWN[pool["apiVersion"], pool["kind"]]))
