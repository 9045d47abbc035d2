"""Checkpoints in TensorFlow's own format, written and read in slices.

They know names and shapes, but no layout: what one mesh has written, any other
reads.
"""

from .bundle import Slice as Slice
from .bundle import merge as merge
from .bundle import write as write
from .bundle import write_part as write_part
from .compare import CheckpointMismatchError as CheckpointMismatchError
from .directory import CheckpointDirectory as CheckpointDirectory
from .directory import step_of as step_of
from .errors import DamagedCheckpointError as DamagedCheckpointError
from .reader import Reader as Reader
from .together import write_together as write_together
