"""Processes that wait for each other before they begin."""

import socket
import threading

import pytest

from mesh_tf2.transformer.run import rendezvous
from mesh_tf2.transformer.run.clusters import Cluster

from tests.support.several import free_ports


def clusters(count):
  addresses = tuple(f"127.0.0.1:{port}" for port in free_ports(count))
  tasks = tuple(f"worker {i}" for i in range(count))
  return [Cluster(tasks, addresses, i) for i in range(count)]


def test_all_go_on_when_the_last_one_has_come():
  three = clusters(3)
  gone_on, servers = [], []

  def wait(cluster):
    rendezvous.wait_for_all(cluster, 20)
    # As TensorFlow does: from now on it is TensorFlow that listens there.
    host, port = cluster.addresses[cluster.number].split(":")
    servers.append(socket.create_server((host, int(port))))
    gone_on.append(cluster.number)

  threads = [threading.Thread(target=wait, args=(c,)) for c in three]
  for thread in threads[:2]:
    thread.start()
  threads[0].join(0.5)
  assert gone_on == []
  threads[2].start()
  for thread in threads:
    thread.join(20)
  assert sorted(gone_on) == [0, 1, 2]
  for server in servers:
    server.close()


def test_those_that_do_not_come_are_named():
  three = clusters(3)
  with pytest.raises(TimeoutError) as error:
    rendezvous.wait_for_all(three[1], 0.3)
  assert str(error.value).startswith(
    f"worker 1 has waited 0.3 seconds for worker 0 ({three[0].addresses[0]}), "
    f"worker 2 ({three[0].addresses[2]}), which TF_CONFIG names; start what"
  )


def test_an_address_that_is_taken_is_told():
  first, _ = clusters(2)
  address = first.addresses[0]
  with (
    socket.create_server(("127.0.0.1", int(address.split(":")[1]))),
    pytest.raises(OSError, match=f"has this process listen at {address}"),
  ):
    rendezvous.wait_for_all(first, 0.3)


def test_an_address_may_be_one_that_only_others_know():
  # A service's or a router's, from where the port is passed on.
  first, _ = clusters(2)
  port = first.addresses[0].split(":")[1]
  away = Cluster(first.tasks, (f"192.0.2.1:{port}", first.addresses[1]), 0)
  with pytest.raises(TimeoutError, match="worker 0 has waited"):
    rendezvous.wait_for_all(away, 0.3)


def test_what_is_no_address_is_told():
  cluster = Cluster(("worker 0", "worker 1"), ("here", "there:1"), 0)
  with pytest.raises(ValueError, match="'here' is no host:port"):
    rendezvous.wait_for_all(cluster, 1)
