"""PyTorch, with the flags of TFMesos' tutorial:

disttf launch --program -- python3 torch_mnist.py --data_dir DIR --ps_hosts {ps_hosts} --worker_hosts {worker_hosts} \
    --job_name {job_name} --worker_index {task_index}
"""
import torch
import torch.nn.functional as F

import disttf.torch
import mnist

flags = mnist.flags()
images, labels = map(torch.from_numpy, mnist.read(flags.data_dir, "train"))
test_images, test_labels = map(torch.from_numpy, mnist.read(flags.data_dir, "t10k"))
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(784, 100), torch.nn.ReLU(), torch.nn.Linear(100, 10))
run = disttf.torch.join(model, data="mnist", rows=len(images), no_decay="*.bias")


@run.evaluate
def test():
    found = model(test_images)
    return {"loss": F.cross_entropy(found, test_labels),
            "accuracy": (found.argmax(1) == test_labels).float().mean()}


for step in run:
    rows = step.rows()
    loss = F.cross_entropy(model(images[rows]), labels[rows])
    loss.backward()
    step.push(loss=loss)
