# SPDX-License-Identifier: Apache-2.0
"""What each app costs is counted: its records, and its part of the batches' time."""

import re
from collections.abc import Callable

import pytest

from identitybus_testkit import commands as c
from identitybus_testkit.commands import Command, fresh
from identitybus_testkit.deployment import Deployment
from identitybus_testkit.service import Service


def by_app(service: Service, name: str) -> dict[str, float]:
    _, text = service.get("/metrics")
    found = {}
    for labels, value in re.findall(rf"^{name}{{([^}}]*)}} (\S+)$", text, re.MULTILINE):
        assert 'service="link"' in labels
        # A label without a value is left out.
        app = re.search(r'app="([^"]*)"', labels)
        found[app[1] if app else ""] = float(value)
    return found


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_what_each_app_costs(make_deployment: Callable[..., Deployment], engine: str) -> None:
    deployment = make_deployment(engine)
    bus, service = deployment.bus, deployment.service().start().wait_ready()

    def of_other(command: Command) -> Command:
        return command.but(app="other", signer=command.signer.replace("demo", "other"))

    registered = [c.register(fresh("install")) for _ in range(30)]
    tried = [of_other(c.register(fresh("install"))).but(attributes={"dryrun": "true"}) for _ in range(50)]
    refused = [of_other(c.request(fresh("install"), "ada")) for _ in range(7)]
    # Nobody's: the signature is another app's, and what a record says of itself is not believed.
    forged = [c.register(fresh("install")).but(signer="other-backend") for _ in range(5)]
    sent = registered + tried + refused + forged
    bus.send_all(sent)
    bus.send(registered[0])
    for command in sent:
        assert bus.reply(command.id)["status"] == ("succeeded" if command in registered + tried else "rejected")
    answers = bus.collector.replies[registered[0].id]
    bus.collector.wait(lambda: len(answers) == 2, 20, lambda: f"{len(answers)} answers to what was sent twice")

    assert by_app(service, "identity_app_commands_total") == {"demo": 31, "other": 57, "": 5}
    seconds = by_app(service, "identity_app_seconds_total")
    assert set(seconds) == {"demo", "other", ""} and all(part > 0 for part in seconds.values())
    # Nothing of the time is lost, and nothing counted twice.
    assert sum(seconds.values()) == pytest.approx(service.metric("identity_batch_duration_seconds_sum"), rel=0.001)
    assert service.stop() == 0
