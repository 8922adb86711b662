"""PyTorch: a convolutional network with batch norm and dropout, and a DataLoader.

disttf launch --program -- python3 torch_cnn.py --data_dir DIR
"""
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

import disttf.torch
import mnist

flags = mnist.flags()
images, labels = map(torch.from_numpy, mnist.read(flags.data_dir, "train"))
test_images, test_labels = map(torch.from_numpy, mnist.read(flags.data_dir, "t10k"))
torch.manual_seed(1)
model = torch.nn.Sequential(
    torch.nn.Unflatten(1, (1, 28, 28)), torch.nn.Conv2d(1, 8, 5, 2, 2), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
    torch.nn.Conv2d(8, 16, 5, 2, 2), torch.nn.BatchNorm2d(16), torch.nn.ReLU(), torch.nn.Flatten(),
    torch.nn.Dropout(0.25), torch.nn.Linear(784, 10))
run = disttf.torch.join(model, data="mnist", no_decay=["*.bias"])


@run.evaluate
def test():
    found = torch.cat([model(part) for part in test_images.split(1000)])
    return {"loss": F.cross_entropy(found, test_labels),
            "accuracy": (found.argmax(1) == test_labels).float().mean()}


loader = DataLoader(TensorDataset(images, labels), batch_sampler=run.sampler(len(images)))
for step, (x, y) in run.batches(loader):
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    step.push(loss=loss)
