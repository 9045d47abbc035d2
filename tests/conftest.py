"""Eight logical CPU devices, before TensorFlow makes any."""

DEVICES = 8


def pytest_configure(config):
  if config.getoption("numprocesses", None) and not hasattr(
    config, "workerinput"
  ):
    return  # the process that hands out the tests runs none
  import tensorflow as tf

  (cpu,) = tf.config.list_physical_devices("CPU")
  devices = [tf.config.LogicalDeviceConfiguration()] * DEVICES
  tf.config.set_logical_device_configuration(cpu, devices)
