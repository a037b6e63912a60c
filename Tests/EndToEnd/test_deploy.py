# SPDX-License-Identifier: Apache-2.0
"""deploy/kubernetes: what kubectl makes of it is what is committed, pods may do little and are given what was measured, and
what they name (variables, secrets, commands, probes) is what the programs know."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from identitybus_testkit.broker import SERVICES, Broker
from identitybus_testkit.databases import PostgresServer, make_role
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.gateway import GatewayDeployment
from identitybus_testkit.places import REPOSITORY
from identitybus_testkit.secrets import INTERNAL_KEY, gateway_keys
from identitybus_testkit.up import tool

FOLDER = REPOSITORY / "deploy" / "kubernetes"
FOLDERS = ("base", "production", "keda", "prepare")
PROGRAMS = (*SERVICES, "gateway")
KUBECTL = os.environ.get("KUBECTL") or shutil.which("kubectl")

Resource = dict[str, Any]


def documents(text: str) -> list[Resource]:
    return [document for document in yaml.safe_load_all(text) if document]


@cache
def rendered(folder: str) -> list[Resource]:
    return documents((FOLDER / "rendered" / f"{folder}.yaml").read_text())


def of_kind(folder: str, kind: str) -> dict[str, Resource]:
    return {item["metadata"]["name"]: item for item in rendered(folder) if item["kind"] == kind}


def comparable(text: str) -> dict[tuple[str, str], Resource]:
    """Without the digests of settings, which versions of kustomize compute in their own way, and what is empty."""
    bare = documents(re.sub(r"(settings)-[0-9a-z]{10}\b", r"\1", text))
    for item in bare:
        item["metadata"] = {name: value for name, value in item["metadata"].items() if value != {}}
    return {(item["kind"], item["metadata"]["name"]): item for item in bare}


@pytest.mark.skipif(KUBECTL is None, reason="kubectl is not there (Debian: kubernetes-client)")
@pytest.mark.parametrize("folder", FOLDERS)
def test_deploy_rendered_is_what_kubectl_makes(folder: str) -> None:
    answer = subprocess.run([KUBECTL or "", "kustomize", FOLDER / folder], capture_output=True, text=True, timeout=60)
    assert answer.returncode == 0, answer.stderr
    made, kept = comparable(answer.stdout), comparable((FOLDER / "rendered" / f"{folder}.yaml").read_text())
    assert made.keys() == kept.keys()
    for name in made:
        assert made[name] == kept[name], f"{name}: run deploy/kubernetes/render"


# Pods


def pods() -> Iterator[tuple[str, Resource]]:
    """The folder's and the workload's name, and its pod."""
    for folder in FOLDERS:
        for item in rendered(folder):
            if item["kind"] in ("Deployment", "Job"):
                yield f"{folder}/{item['metadata']['name']}", item["spec"]["template"]["spec"]


def containers() -> Iterator[tuple[str, Resource]]:
    for name, pod in pods():
        for container in pod["containers"]:
            yield name, container


def settings_of(folder: str) -> dict[str, str]:
    """The ConfigMap of the pods."""
    [found] = [item["data"] for item in rendered(folder) if item["kind"] == "ConfigMap"]
    return found


def test_deploy_pods_may_do_little() -> None:
    for name, pod in pods():
        assert pod["securityContext"] == {
            "runAsNonRoot": True, "runAsUser": 10001, "runAsGroup": 10001, "fsGroup": 10001,
            "seccompProfile": {"type": "RuntimeDefault"}}, name
        assert pod["automountServiceAccountToken"] is False and pod["enableServiceLinks"] is False, name
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod), name
    for name, container in containers():
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}, name
        assert all(mount["readOnly"] for mount in container["volumeMounts"]), name
        assert not any("subPath" in mount for mount in container["volumeMounts"]), "a changed secret would not be seen"
    dockerfile = (REPOSITORY / "Dockerfile").read_text()
    assert "\nUSER 10001:10001\n" in dockerfile


def test_deploy_each_program_has_its_own_account_and_may_be_disturbed_one_at_a_time() -> None:
    for folder in ("base", "production", "keda"):
        deployments = of_kind(folder, "Deployment")
        assert set(deployments) == set(PROGRAMS)
        for name, deployment in deployments.items():
            pod = deployment["spec"]["template"]["spec"]
            assert pod["serviceAccountName"] == name and name in of_kind(folder, "ServiceAccount")
            labels = deployment["spec"]["template"]["metadata"]["labels"]
            assert deployment["spec"]["selector"]["matchLabels"] == labels
            budget = of_kind(folder, "PodDisruptionBudget")[name]["spec"]
            assert budget == {"maxUnavailable": 1, "selector": {"matchLabels": labels}}
            assert deployment["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
            assert {spread["topologyKey"] for spread in pod["topologySpreadConstraints"]} == {
                "topology.kubernetes.io/zone", "kubernetes.io/hostname"}
    assert "replicas" not in of_kind("keda", "Deployment")["link"]["spec"]


def test_deploy_a_stop_has_the_time_that_it_may_take() -> None:
    """30 s plus what was added to DRAIN_TIMEOUT_SECONDS (operations.md, Start and stop)."""
    for folder in ("base", "production", "keda"):
        drain = int(settings_of(folder)["DRAIN_TIMEOUT_SECONDS"])
        for deployment in of_kind(folder, "Deployment").values():
            pod = deployment["spec"]["template"]["spec"]
            [delay] = re.findall(r"GATEWAY_DRAIN_DELAY_SECONDS=(\d+)", (REPOSITORY / "Dockerfile").read_text())
            more = int(delay) if deployment["metadata"]["name"] == "gateway" else 0
            assert pod["terminationGracePeriodSeconds"] >= drain + 20 + more


def mebibytes(quantity: str) -> int:
    assert quantity.endswith("Mi")
    return int(quantity[:-2])


def peaks() -> dict[str, int]:
    """Of each service on PostgreSQL, as performance.md has them in its summary."""
    summary = (REPOSITORY / "docs" / "performance.md").read_text().partition("\n## Summary\n")[2].partition("\n## ")[0]
    [link] = re.findall(r"\| PostgreSQL, one loop \(as shipped\) .*\| (\d+) MiB \|", summary)
    [others] = re.findall(r"\| peak memory: user, verification, sync \| [^|]* \| ([^|]*) MiB \|", summary)
    return dict(zip(("link", "user", "verification", "sync"), map(int, [link, *others.split(", ")])))


def test_deploy_memory_is_what_was_measured() -> None:
    for name, peak in peaks().items():
        source = (FOLDER / "base" / f"{name}.yaml").read_text()
        assert f"# {peak} MiB (docs/performance.md \"Summary\")" in source or f" {peak} MiB (docs/performance.md" in source, name
        [container] = of_kind("base", "Deployment")[name]["spec"]["template"]["spec"]["containers"]
        assert peak * 1.5 < mebibytes(container["resources"]["limits"]["memory"]), name
        assert set(container["resources"]["limits"]) == {"memory"} and container["resources"]["requests"]["cpu"]
    [gateway] = of_kind("base", "Deployment")["gateway"]["spec"]["template"]["spec"]["containers"]
    page = (REPOSITORY / "docs" / "gateway.md").read_text()
    [waiting] = re.findall(r"`GATEWAY_MAX_IN_FLIGHT` \| (\d+) ", page)
    [size] = re.findall(r"`GATEWAY_MAX_BODY_BYTES` \| (\d+) ", page)
    assert int(waiting) * int(size) / 2**20 < mebibytes(gateway["resources"]["limits"]["memory"])


def test_deploy_the_four_services_differ_in_name_and_peak_only() -> None:
    texts = {name: (FOLDER / "base" / f"{name}.yaml").read_text() for name in SERVICES}
    bare = {re.sub(r"\d+ MiB", "", re.sub(rf"\b{name}\b", "NAME", text)) for name, text in texts.items()}
    assert len(bare) == 1


# What they name


def known_variables() -> set[str]:
    """Of the tables of settings, with the `_FILE` of secrets."""
    names: set[str] = set()
    for page in ("operations.md", "gateway.md"):
        is_table = False
        for line in (REPOSITORY / "docs" / page).read_text().splitlines():
            first = line.strip().strip("|").split(" | ")[0].strip()
            is_table = line.startswith("|") and (is_table or first == "variable")
            names |= set(re.findall("`([A-Z_*]+)`", first)) if is_table else set()
    secrets = {name for name in names if name.endswith(("_KEY", "_KEYS"))} | {"IDENTITYBUS_SALTS", "DATABASE_URL"}
    return names | {f"{name}_FILE" for name in secrets}


def is_known(name: str) -> bool:
    known = known_variables()
    return name in known or any(name.startswith(family[:-1]) for family in known if family.endswith("*"))


def test_deploy_every_variable_is_a_setting() -> None:
    found: set[str] = set()
    for folder in FOLDERS:
        found |= set(settings_of(folder))
    for _, container in containers():
        found |= {variable["name"] for variable in container.get("env", ())}
    assert found and {name for name in found if not is_known(name)} == set()


def test_deploy_every_secret_is_told_and_is_a_folder() -> None:
    told = (FOLDER / "secrets.example.yaml").read_text()
    for name, pod in pods():
        mounted = {volume["secret"]["secretName"] for volume in pod["volumes"] if "secret" in volume}
        for secret in mounted:
            kind = re.sub(r"-(link|user|sync|verification|gateway|owner)$", "", secret)
            assert kind in told, secret
        for container in pod["containers"]:
            assert not any("valueFrom" in variable for variable in container.get("env", ())), name
            assert not any("secretRef" in source for source in container["envFrom"]), name
        places = {mount["mountPath"] for container in pod["containers"] for mount in container["volumeMounts"]}
        for container in pod["containers"]:
            for variable in container.get("env", ()):
                if variable["name"].endswith("_FILE"):
                    assert str(Path(variable["value"]).parent) in places, variable
    for folder in ("production", "prepare"):
        assert {settings_of(folder)[f"KAFKA_SASL_{what}_FILE"] for what in ("USERNAME", "PASSWORD")} == {
            "/run/secrets/kafka/username", "/run/secrets/kafka/password"}


def environment_of(folder: str, name: str, mounts: Path) -> dict[str, str]:
    """What a container is given, with the folder `mounts` in place of /, and no certificates."""
    [container] = of_kind(folder, "Deployment")[name]["spec"]["template"]["spec"]["containers"]
    given = settings_of(folder) | {variable["name"]: variable["value"] for variable in container.get("env", ())}
    given = {key: f"{mounts}{value}" if value.startswith("/") else value for key, value in given.items()}
    for key in ("KAFKA_SSL_CA_LOCATION", "PGSSLROOTCERT"):
        given.pop(key, None)
    return given


@pytest.fixture(scope="module")
def mounts(directory: Path) -> Path:
    """What the secrets hold, where the pods have them."""
    root = directory / "mounts"
    shutil.copytree(REPOSITORY / "config", root / "etc" / "identitybus")
    for place, text in (("internal/key", INTERNAL_KEY), ("database/url", "postgresql://u@127.0.0.1:1/x"),
                        ("gateway/keys", gateway_keys()), ("kafka/username", "u"), ("kafka/password", "p")):
        path = root / "run" / "secrets" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root


@pytest.mark.parametrize("folder", ["base", "production"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_deploy_settings_are_accepted(folder: str, name: str, mounts: Path) -> None:
    environment = environment_of(folder, name, mounts)
    answer = tool("settings", "--as", name, "--set", environment=environment)
    assert answer.returncode == 0, answer
    assert "is read by nothing" not in answer.stdout + answer.stderr


def test_deploy_probes_are_answered(make_deployment: Callable[..., Deployment]) -> None:
    deployment = make_deployment("sqlite", kind=GatewayDeployment)
    assert isinstance(deployment, GatewayDeployment)
    link = deployment.process("link").start().wait_ready()
    gateway = deployment.gateway().start().wait_ready()
    for name, service in (("link", link), ("gateway", gateway)):
        [container] = of_kind("production", "Deployment")[name]["spec"]["template"]["spec"]["containers"]
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        assert str(ports["health"]) == settings_of("production")["HTTP_PORT"]
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            assert container[probe]["httpGet"]["port"] == "health"
            assert service.get(container[probe]["httpGet"]["path"])[0] == 200
        startup = container["startupProbe"]
        assert startup["periodSeconds"] * startup["failureThreshold"] == 300
    variables = {variable["name"]: variable["value"] for variable in container["env"]}
    assert variables["GATEWAY_PORT"] == str(ports["http"])


# The network


Ports = set[tuple[str, int]]


def policies(folder: str, labels: dict[str, str]) -> list[Resource]:
    """Those that hold for a pod with these labels. The jobs of `prepare` stand behind those of `production`."""
    def holds(policy: Resource) -> bool:
        selector = policy["spec"]["podSelector"]
        assert set(selector) <= {"matchLabels", "matchExpressions"}
        for expression in selector.get("matchExpressions", ()):
            assert expression["operator"] == "In"
            if labels.get(expression["key"]) not in expression["values"]:
                return False
        return all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())

    found = of_kind("production" if folder == "prepare" else folder, "NetworkPolicy").values()
    return [policy for policy in found if holds(policy)]


def let_out(found: list[Resource]) -> Ports:
    rules = [rule for policy in found for rule in policy["spec"].get("egress", ())]
    assert all(set(rule) == {"ports"} for rule in rules), "whereto is not said: only the ports are"
    return {(port["protocol"], port["port"]) for rule in rules for port in rule["ports"]}


def let_in(found: list[Resource]) -> dict[int, set[str]]:
    """The namespaces that reach each port."""
    reached: dict[int, set[str]] = {}
    for rule in (rule for policy in found for rule in policy["spec"].get("ingress", ())):
        for place in rule["from"]:
            name = place["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"]
            for port in rule["ports"]:
                reached.setdefault(port["port"], set()).add(name)
    return reached


def test_deploy_the_network_lets_through_what_the_settings_name_and_nothing_else() -> None:
    """Whether a cluster enforces it cannot be seen here."""
    page = (REPOSITORY / "docs" / "operations.md").read_text()
    [collector] = re.findall(r"OTEL_EXPORTER_OTLP_ENDPOINT=http://[\d.]+:(\d+) identitybus", page)
    # Of Kafka as Amazon MSK has them: plain text, TLS, SCRAM, IAM.
    kafka, postgres = {9092, 9094, 9096, 9098}, 5432
    for folder in FOLDERS:
        told = {int(server.rpartition(":")[2]) for server in settings_of(folder)["KAFKA_BOOTSTRAP_SERVERS"].split(",")}
        assert told <= kafka
        for item in rendered(folder):
            if item["kind"] not in ("Deployment", "Job"):
                continue
            labels = item["spec"]["template"]["metadata"]["labels"]
            found, name = policies(folder, labels), item["metadata"]["name"]
            # Both ways are closed but for what is named.
            assert {kind for policy in found for kind in policy["spec"]["policyTypes"]} == {"Ingress", "Egress"}, name
            out = {("UDP", 53), ("TCP", 53), ("TCP", int(collector)), *(("TCP", port) for port in kafka)}
            assert let_out(found) == out | ({("TCP", postgres)} if name != "gateway" else set()), name
            reached = {int(settings_of("production")["HTTP_PORT"]): {"monitoring"}}
            if name == "gateway":
                [container] = item["spec"]["template"]["spec"]["containers"]
                variables = {variable["name"]: variable["value"] for variable in container["env"]}
                assert "GATEWAY_ADMIN_PORT" not in {*variables, *settings_of(folder)}, "it needs a rule of its own"
                reached[int(variables["GATEWAY_PORT"])] = {"ingress"}
            assert let_in(found) == reached, name


def test_deploy_the_network_is_as_the_page_tells() -> None:
    [line] = [line for line in (REPOSITORY / "docs" / "kubernetes.md").read_text().splitlines() if "**Network policies**" in line]
    assert {"8080", "`monitoring`", "8081", "`ingress`", "4318"} <= set(re.findall(r"\d{4}|`\w+`", line))
    # The database's URL of the example names no other port than PostgreSQL's own.
    [url] = re.findall(r"postgresql://\S+", (FOLDER / "secrets.example.yaml").read_text())
    assert "?" in url and not re.search(r":\d+/", url)


# The jobs


def command_of(job: str) -> list[str]:
    [container] = of_kind("prepare", "Job")[job]["spec"]["template"]["spec"]["containers"]
    program, *arguments = container["command"]
    assert program == "identitybus"
    return arguments


def test_deploy_migrate_brings_an_empty_database_to_the_version(postgres: PostgresServer, directory: Path) -> None:
    database = postgres.new_database()
    file = directory / "owner-url"
    file.write_text(database.url)
    [grants] = [word for word in command_of("identitybus-migrate") if "=" in word]
    for pair in grants.split(","):
        make_role(database.url, pair.partition("=")[2])
    answer = tool(*command_of("identitybus-migrate"), environment={"DATABASE_URL_FILE": str(file)})
    assert answer.returncode == 0 and "services may run without CREATE" in answer.stdout, answer
    again = tool(*command_of("identitybus-migrate"), environment={"DATABASE_URL_FILE": str(file)})
    assert again.returncode == 0, again


def test_deploy_topics_are_asked_for_as_services_do(broker: Broker, mounts: Path, deployment: Deployment) -> None:
    """The embedded broker makes them by itself, and is told so (3); on a small cluster they are weak (3)."""
    settings = {name: value for name, value in settings_of("prepare").items() if not name.startswith(("KAFKA_", "PG"))}
    settings["IDENTITYBUS_APPS"] = f"{mounts}{settings['IDENTITYBUS_APPS']}"
    environment = settings | broker.service_environment() | {"TOPIC_PREFIX": deployment.prefix}
    environment["TOPIC_REPLICATION_FACTOR"] = "1"
    answer = tool(*command_of("identitybus-topics"), environment=environment)
    assert answer.returncode in (0, 3), answer
    told = "makes no topics on demand" if broker.is_embedded else f"{deployment.prefix}identity.link.commands.v1"
    assert told in answer.stdout + answer.stderr, answer
