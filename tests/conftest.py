"""Eight logical CPU devices, before TensorFlow makes any."""

import tensorflow as tf

DEVICES = 8


def pytest_configure(config):
  del config
  (cpu,) = tf.config.list_physical_devices("CPU")
  devices = [tf.config.LogicalDeviceConfiguration()] * DEVICES
  tf.config.set_logical_device_configuration(cpu, devices)
