"""Keras: fit() as ever; the optimizer alone was changed, and the number of epochs, since the run ends fit().

disttf launch --program -- python3 keras_fit.py --data_dir DIR
"""
import tensorflow as tf

import disttf.tensorflow
import mnist

images, labels = mnist.read(mnist.flags().data_dir, "train")
tf.keras.utils.set_random_seed(1)
model = tf.keras.Sequential([tf.keras.layers.Input((784,)), tf.keras.layers.Dense(100, activation="relu"),
                             tf.keras.layers.Dense(10)])
model.compile(disttf.tensorflow.Optimizer(model), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(images, labels, batch_size=100, epochs=1000, verbose=0)
