"""Several processes that run one program, from `TF_CONFIG`."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

EXAMPLE = (
  '{"cluster": {"worker": ["first:2222", "second:2222"]}, '
  '"task": {"type": "worker", "index": 0}}'
)


@dataclasses.dataclass(frozen=True)
class Cluster:
  """Processes that run one program together.

  Attributes:
    tasks: their names, `"worker 1"`, by number: a chief is the first one.
    addresses: where each listens.
    number: which of them this process is.
  """

  tasks: tuple[str, ...]
  addresses: tuple[str, ...]
  number: int

  @property
  def this(self) -> str:
    """The name of this process."""
    return self.tasks[self.number]


def cluster_of(tf_config: str | None) -> Cluster | None:
  """Reads the environment variable `TF_CONFIG`.

  Args:
    tf_config: its value; None or empty if it is not set.

  Returns:
    The processes; None if there is only one.

  Raises:
    ValueError: it is not of the form that TensorFlow reads, or this process is
      none of those that it names.
  """
  if not tf_config:
    return None
  config = _parsed(tf_config)
  jobs = {
    job: list(config["cluster"].get(job, [])) for job in ("chief", "worker")
  }
  tasks = [(job, i) for job, all_ in jobs.items() for i in range(len(all_))]
  if len(tasks) < 2:
    return None
  task = config.get("task")
  this = _this(task)
  if this not in tasks:
    raise ValueError(
      f"TF_CONFIG: its task is {task!r}; it is one of those of its cluster: "
      f"{', '.join(map(_name, tasks))}"
    )
  return Cluster(
    tasks=tuple(map(_name, tasks)),
    addresses=tuple(jobs["chief"] + jobs["worker"]),
    number=tasks.index(this),
  )


def _parsed(tf_config: str) -> dict[str, Any]:
  """The parts of it; without a cluster there is one process."""
  try:
    config = json.loads(tf_config)
  except json.JSONDecodeError as error:
    raise ValueError(
      f"TF_CONFIG is no JSON ({error}); it looks like this: {EXAMPLE}"
    ) from None
  cluster = config.get("cluster") or {} if isinstance(config, dict) else None
  if not isinstance(cluster, dict) or not all(
    isinstance(addresses, list) for addresses in cluster.values()
  ):
    raise ValueError(f"TF_CONFIG is {tf_config}; it looks like this: {EXAMPLE}")
  if "ps" in cluster:
    raise ValueError(
      "TF_CONFIG names parameter servers (ps), which this program has no use "
      f"for; it looks like this: {EXAMPLE}"
    )
  return {"cluster": cluster, "task": config.get("task")}


def _this(task: Any) -> tuple[Any, Any]:
  """The type and the number of a task; TensorFlow takes "0" for 0, too."""
  parts = task if isinstance(task, dict) else {}
  index = str(parts.get("index"))
  return parts.get("type"), int(index) if index.isdigit() else None


def _name(task: tuple[str, int]) -> str:
  return f"{task[0]} {task[1]}"
