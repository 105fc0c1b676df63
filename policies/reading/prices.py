"""What the GPU nodes of an estate cost, by the price table of this folder."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from policies.judging.settings import check_date, check_text
from policies.judging.unknown import CannotDecide
from policies.judging.view import Resource, View
from spec import source
from spec.eks import EksSpec, InstanceType, Region
from spec.fields import Spec
from spec.problems import SpecError
from spec.validation import validate

PRICES_FILE: Final = "policies/prices.yaml"
NODE_GROUP: Final = "aws:eks/nodeGroup:NodeGroup"
HOURS_PER_MONTH: Final = 730
_PROJECT: Final = Path(__file__).parents[2]


class PriceTable(Spec):
    """Prices of one region.

    Attributes:
        region: where they hold.
        date: the day on which they were looked up.
        source: whose list it is, in words.
        hourly: USD per hour on demand, by EC2 instance type.
    """

    region: Region
    date: Annotated[str, AfterValidator(check_date)]
    source: Annotated[str, AfterValidator(check_text)]
    hourly: dict[InstanceType, Annotated[float, Field(gt=0)]]

    @property
    def note(self) -> str:
        """What a reader of a sum has to know about it."""
        return f"list price on demand in {self.region} as found on {self.date}, check yours"


@dataclass(frozen=True)
class PoolPrice:
    """What one pool costs.

    Attributes:
        pool: name of the pool or node group.
        instance_type: EC2 instance type, several with a comma; empty where the stack makes no node.
        nodes: fewest and most nodes.
        gpus: cards of the fewest and of the most nodes.
        low: USD per month with the fewest nodes; None where the table has no price.
        high: USD per month with the most nodes; None where the table has no price.
        spot: whether the nodes are spot instances, which cost less than this: the table has no such prices.
        unpriced: why there is no price, in words; empty where there is one.
        made_here: whether the stack makes the nodes.
    """

    pool: str
    instance_type: str = ""
    nodes: tuple[int, int] = (0, 0)
    gpus: tuple[int, int] = (0, 0)
    low: float | None = None
    high: float | None = None
    spot: bool = False
    unpriced: str = ""
    made_here: bool = True


@dataclass(frozen=True)
class Price:
    """What the GPU nodes of an estate cost.

    Attributes:
        low: USD per month with the fewest nodes, of what has a price.
        high: USD per month with the most nodes, of what has a price.
        unpriced: what is not in these figures, each with the reason, in words.
        pools: one line for a pool.
        note: where and when the prices were found.
    """

    low: float
    high: float
    unpriced: tuple[str, ...]
    pools: tuple[PoolPrice, ...]
    note: str


def load_prices(project: Path = _PROJECT) -> PriceTable:
    """Read and check the price table of a project.

    Raises:
        SpecError: with every mistake in it.
    """
    found = source.read(project / PRICES_FILE, PRICES_FILE)
    if found.problems:
        raise SpecError(found.problems)
    table, problems = validate(PriceTable, found.data, found)
    if table is None:
        raise SpecError(problems)
    return table


@lru_cache
def _table() -> PriceTable:
    return load_prices()


def estate_price(view: View, table: PriceTable | None = None) -> Price:
    """What the GPU nodes of a stack cost in a month.

    Nodes that somebody else made are named and have no price, and simulated ones cost nothing. A node group of which
    the preview does not know enough is named as well.

    Args:
        view: the stack and its resources.
        table: prices; by default those of this folder.

    Raises:
        SpecError: a mistake in the table.
    """
    prices = table or _table()
    lines = (*monthly(view, prices), *_of_others(view))
    return Price(
        low=round(sum(line.low or 0 for line in lines), 2),
        high=round(sum(line.high or 0 for line in lines), 2),
        unpriced=tuple(f"{line.pool}: {line.unpriced}" for line in lines if line.unpriced),
        pools=lines,
        note=prices.note,
    )


def monthly(view: View, table: PriceTable) -> Iterator[PoolPrice]:
    """One line for each EKS node group of the stack."""
    for found in view.resources:
        if found.type == NODE_GROUP:
            try:
                yield _node_group(found, table.hourly)
            except CannotDecide as unknown:
                yield PoolPrice(found.name, unpriced=f"{unknown}")


def _node_group(found: Resource, hourly: Mapping[str, float]) -> PoolPrice:
    name = found.at("nodeGroupName", default=found.name)
    kinds = [f"{kind}" for kind in found.at("instanceTypes", default=[])]
    # EKS makes a group without sizes of one or two nodes, and one without a type of t3.medium.
    nodes = int(found.at("scalingConfig", "minSize", default=1)), int(found.at("scalingConfig", "maxSize", default=2))
    spot = found.at("capacityType", default="ON_DEMAND") == "SPOT"
    cards = [EksSpec.model_construct(instance_type=kind).cards or 0 for kind in kinds] or [0]
    gpus = nodes[0] * min(cards), nodes[1] * max(cards)
    missing = [kind for kind in kinds if kind not in hourly]
    if missing or not kinds:
        what = ", ".join(missing) or "an instance type that is not said"
        return PoolPrice(name, ", ".join(kinds), nodes, gpus, spot=spot, unpriced=f"no price for {what}")
    prices = [hourly[kind] * HOURS_PER_MONTH for kind in kinds]
    low, high = round(nodes[0] * min(prices), 2), round(nodes[1] * max(prices), 2)
    return PoolPrice(name, ", ".join(kinds), nodes, gpus, low, high, spot)


def _of_others(view: View) -> Iterator[PoolPrice]:
    for pool in view.spec.gpu_pools:
        if pool.provider == "existing":
            yield PoolPrice(
                pool.name,
                nodes=(pool.nodes, pool.nodes),
                gpus=(pool.cards, pool.cards),
                unpriced="its nodes are not made by this stack",
                made_here=False,
            )
