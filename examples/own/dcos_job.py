"""A job of DC/OS' package: main(server, log_dir, context).

disttf render dcos --secret NAME --program=/disttf --options examples/own/dcos_options.json
disttf train --program -- python3 -m disttf.job --job_url URL --job_path examples/own --job_name dcos_job \
    --job_context '{{"data_dir": "DIR"}}'
"""
import torch
import torch.nn.functional as F

import mnist


def main(server, log_dir, context):
    images, labels = map(torch.from_numpy, mnist.read(context["data_dir"], "train"))
    torch.manual_seed(1)
    model = torch.nn.Linear(784, 10)
    run = server.join(model, data="mnist", rows=len(images))
    for step in run:
        rows = step.rows()
        loss = F.cross_entropy(model(images[rows]), labels[rows])
        loss.backward()
        step.push(loss=loss)
    if run.info["is_chief"] and log_dir:
        torch.save(model.state_dict(), log_dir + "/model.pt")
