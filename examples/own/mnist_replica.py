"""TensorFlow, with the flags of Marathon's tutorial, whose program has this name:

disttf train --program --job_name=worker --task_index=0 --ps_hosts=... --worker_hosts=... \
    -- python3 mnist_replica.py --data_dir DIR
"""
import tensorflow as tf

import disttf.tensorflow
import mnist

flags = mnist.flags()
images, labels = mnist.read(flags.data_dir, "train")
test_images, test_labels = mnist.read(flags.data_dir, "t10k")
tf.keras.utils.set_random_seed(1)
model = tf.keras.Sequential([tf.keras.layers.Input((784,)), tf.keras.layers.Dense(100, activation="relu"),
                             tf.keras.layers.Dense(10)])
entropy = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
run = disttf.tensorflow.join(model, data="mnist", rows=len(images), no_decay="*bias")


@tf.function
def gradient(x, y):
    with tf.GradientTape() as tape:
        loss = entropy(y, model(x, training=True))
    return loss, tape.gradient(loss, run.trained)


@run.evaluate
def test():
    found = model(test_images, training=False)
    return {"loss": entropy(test_labels, found), "accuracy": (found.numpy().argmax(1) == test_labels).mean()}


for step in run:
    rows = step.rows()
    loss, gradients = gradient(images[rows], labels[rows])
    step.push(gradients, loss=loss)
