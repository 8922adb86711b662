"""PyTorch: a plain loop, in which two lines were changed: the import and the optimizer.

disttf launch --program -- python3 torch_drop_in.py --data_dir DIR
"""
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

import disttf.torch
import mnist

images, labels = map(torch.from_numpy, mnist.read(mnist.flags().data_dir, "train"))
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(784, 100), torch.nn.ReLU(), torch.nn.Linear(100, 10))
opt = disttf.torch.Optimizer(model)
for epoch in range(1000):
    for x, y in DataLoader(TensorDataset(images, labels), 100, shuffle=True):
        opt.zero_grad()
        F.cross_entropy(model(x), y).backward()
        opt.step()
