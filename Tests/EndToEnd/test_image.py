# SPDX-License-Identifier: Apache-2.0
"""What can be seen of the image where nothing runs containers: the programs need no library that it does not install, and they
work as its user where nothing can be written."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from identitybus_testkit.broker import SERVICES
from identitybus_testkit.commands import fresh
from identitybus_testkit.gateway import GatewayDeployment
from identitybus_testkit.places import REPOSITORY, binary

PROGRAMS = ("identitybus", *(f"identitybus-{name}" for name in (*SERVICES, "gateway")))
USER = 10001


def output(*command: object) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def libraries(program: str) -> Iterator[str]:
    for line in output("ldd", binary(program)).splitlines():
        if match := re.search(r"=> (/\S+)|^\s*(/\S+) ", line):
            yield match[1] or match[2]


def owners(found: set[str]) -> dict[str, str]:
    """The Debian package that each library is from."""
    names = {f"{root}{library.removeprefix('/usr')}": library for library in found for root in ("", "/usr")}
    lines = subprocess.run(["dpkg", "-S", *names], capture_output=True, text=True, timeout=60).stdout.splitlines()
    return {names[path]: package.partition(":")[0] for package, _, path in (line.partition(": ") for line in lines)}


def with_what_they_need(packages: set[str]) -> set[str]:
    found: set[str] = set()
    installed = output("dpkg-query", "-W", "-f", "${Package} ${Status}\\n").splitlines()
    known = {line.split()[0] for line in installed if line.endswith(" installed")}
    while packages:
        found |= packages
        lines = output("dpkg-query", "-W", "-f", "${Depends}, ${Pre-Depends}\\n", *sorted(packages))
        packages = set(re.findall(r"(?:^|[,|]\s*)([a-z0-9][a-z0-9.+-]+)", lines, re.M)) - found
        packages &= known
    return found


@pytest.mark.skipif(shutil.which("dpkg") is None, reason="asks Debian's packages")
def test_image_has_every_library() -> None:
    final = (REPOSITORY / "Dockerfile").read_text().rpartition("FROM ")[2]
    named = re.search(r"--no-install-recommends ([^\\]+)\\", final)
    assert named is not None
    there = with_what_they_need(set(named[1].split()))
    # Swift's own are linked into what the image has (--static-swift-stdlib).
    needed = {
        library for program in PROGRAMS for library in libraries(program) if not re.search("/(lib)?swift", library)}
    owned = owners(needed)
    assert "librdkafka1" in owned.values() and set(owned) == needed
    assert {library: package for library, package in owned.items() if package not in there} == {}


def labels() -> dict[str, str]:
    """As the Dockerfile writes them, with variables as they are named."""
    final = (REPOSITORY / "Dockerfile").read_text().rpartition("FROM ")[2]
    return dict(re.findall(r'(org\.opencontainers\.image\.[a-z.]+)="([^"]*)"', final))


def test_image_says_what_it_is() -> None:
    """Version and commit by what the build is given, so that no label can be of another build; the licence is that of LICENSE."""
    dockerfile = (REPOSITORY / "Dockerfile").read_text()
    final = dockerfile.rpartition("FROM ")[2]
    assert labels() == {f"org.opencontainers.image.{name}": value for name, value in {
        "title": "IdentityBus",
        "description": "Who is using this install right now: services on Kafka, their gateway and their command line",
        "licenses": "Apache-2.0", "version": "${VERSION}", "revision": "${REVISION}", "base.name": "${BASE_IMAGE}"}.items()}
    # Without an ARG behind the last FROM a variable is empty there.
    for name in re.findall(r"\$\{(\w+)\}", " ".join(labels().values())):
        assert re.search(rf"^ARG {name}(=|$)", final, re.M), name
    # What --version says of the commit is what the label says.
    assert 'IDENTITYBUS_COMMIT="${REVISION}"' in final
    assert "Apache License" in (REPOSITORY / "LICENSE").read_text()[:300]
    for page in ("Dockerfile", "docs/releasing.md"):
        told = (REPOSITORY / page).read_text()
        assert '--build-arg VERSION="$(cat VERSION)" --build-arg REVISION="$(git rev-parse HEAD)"' in told, page


def test_image_lists_are_where_the_list_of_contents_reads_them() -> None:
    final = (REPOSITORY / "Dockerfile").read_text().rpartition("FROM ")[2]
    sbom = (REPOSITORY / "scripts" / "sbom").read_text() + (REPOSITORY / "docs" / "operations.md").read_text()
    for path in ("/usr/share/identitybus/packages.tsv", "/usr/share/identitybus/Package.resolved"):
        assert Path(path).name in sbom and (path in final or f"{Path(path).name} {Path(path).parent}/" in final), path


@pytest.fixture
def confined(tmp_path: Path) -> Callable[[str], Path]:
    """A program as the image's user, for whom no file system can be written to but those of the kernel."""
    def make(name: str) -> Path:
        script = tmp_path / name
        script.write_text(
            "#!/bin/bash\n"
            "exec unshare --mount --propagation private bash -c '"
            "while read -r _ place kind _; do case $kind in proc|sysfs|devpts|mqueue|cgroup*) ;; "
            "*) mount -o remount,bind,ro \"$place\" 2>/dev/null;; esac; done </proc/self/mounts; "
            f"exec setpriv --reuid={USER} --regid={USER} --clear-groups --no-new-privs \"$0\" \"$@\"' "
            f"{binary(name)} \"$@\"\n")
        script.chmod(0o755)
        return script

    return make


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="only root becomes somebody else")
def test_image_programs_write_nothing(
    confined: Callable[[str], Path], make_deployment: Callable[..., GatewayDeployment], tmp_path: Path
) -> None:
    version = subprocess.run([confined("identitybus"), "--version"], capture_output=True, text=True, timeout=60)
    assert version.returncode == 0 and version.stdout.startswith("identitybus "), version
    assert re.search(r"\(.+\), Swift .*, librdkafka .*, libpq .*, SQLite ", version.stdout), version.stdout
    # That it is so.
    probe = confined("identitybus").read_text().replace(str(binary("identitybus")), f"/usr/bin/touch /tmp/{fresh('made')}")
    (tmp_path / "probe").write_text(probe)
    answer = subprocess.run(["bash", tmp_path / "probe"], capture_output=True, text=True, timeout=60)
    assert answer.returncode != 0 and "Read-only file system" in answer.stderr, answer
    deployment = make_deployment("postgresql", services=SERVICES, kind=GatewayDeployment)
    deployment.directory.chmod(0o755)
    deployment.apps_file.chmod(0o644)
    everybody = [deployment.process(name) for name in SERVICES] + [deployment.gateway()]
    for service in everybody:
        service.program = confined(f"identitybus-{service.name}")
        service.start()
    for service in everybody:
        service.wait_ready()
        status = Path(f"/proc/{service.process.pid}/status").read_text()
        [line] = [line for line in status.splitlines() if line.startswith("Uid:")]
        assert set(line.split()[1:]) == {str(USER)}, line
    gateway = deployment.services[-1]
    code = gateway.client.post("/users/auth-code", {"external_id": fresh("ext")}, "demo-backend")  # type: ignore[attr-defined]
    assert code.status == 200, code
    for service in everybody:
        assert service.stop() == 0 and not [line for line in service.complaints() if "topics.weak" not in line]
