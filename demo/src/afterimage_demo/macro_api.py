"""What the demo's macro `land_demo` calls on the adapter."""

from __future__ import annotations

from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from afterimage_demo.systems import demo_system
from afterimage_demo.transport import Destination
from dbt_afterimage.spark.session import current


def land_demo(
    adapter: Any,
    system: str,
    batch: int,
    scale: int,
    seed: int,
    destination: dict[str, Any],
) -> None:
    """Bring one batch of a system's demo to its destination; batch 1 replaces all earlier ones.

    Args:
        adapter: dbt's adapter.
        system: whose demo.
        batch: its number, from 1.
        scale: size of the data.
        seed: of the generator.
        destination: the fields of `transport.Destination`, by name.

    Raises:
        DbtRuntimeError: the system has no demo, or the batch cannot be landed as requested.
    """
    try:
        demo = demo_system(system)
        delivery = demo.deliveries(scale, seed, max(batch, 2))[batch - 1]
        session = current()
        demo.transport.deliver(session, delivery, Destination(**destination))
    except ValueError as error:
        raise DbtRuntimeError(str(error)) from error
