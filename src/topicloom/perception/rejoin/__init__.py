"""Returning to a topic left long ago: which open topic a new block belongs to, if any."""

from topicloom.perception.rejoin.rejoiner import Choice, Rejoiner
from topicloom.perception.rejoin.scene import Scene
from topicloom.perception.rejoin.threads import Placement, Threads
from topicloom.perception.rejoin.trace import TopicTrace
from topicloom.perception.rejoin.traces import Traces

__all__ = ["Choice", "Placement", "Rejoiner", "Scene", "Threads", "TopicTrace", "Traces"]
