"""What may be wrong with a checkpoint's files."""


class DamagedCheckpointError(OSError):
  """A file of a checkpoint is missing, cut short, or holds other bytes."""
