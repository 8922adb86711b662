"""disttf.torch. The programs are forks of this process, since importing PyTorch takes seconds."""
import array
import json
import re

import pytest

torch = pytest.importorskip("torch")
torch.set_num_threads(1)
torch.optim.Adam([torch.zeros(1)])  # imports what its first use imports, once for all forks

from fake_task import ASK_ROWS, COMPUTE, ProgramFailed  # noqa: E402

HEAD = '''
import sys
import torch, torch.nn as nn, torch.nn.functional as F
import disttf.torch
torch.set_num_threads(1)
torch.manual_seed(3)
x = torch.randn(200, 6)
y = (x.sum(1) > 0).long()
'''
LOOP = HEAD + '''
MODEL
run = disttf.torch.join(model, OPTIONS)
EVALUATE
for step in run:
    rows = step.rows(200)
    loss = F.cross_entropy(model(x[rows]), y[rows])
    loss.backward()
    BEFORE
    step.push(loss=loss)
    AFTER
END
'''
LINEAR = "model = nn.Linear(6, 2)"


def text(model=LINEAR, options="", evaluate="", before="", after="", end=""):
    found = LOOP
    for word, value in (("MODEL", model), ("OPTIONS", options), ("EVALUATE", evaluate), ("BEFORE", before),
                        ("AFTER", after), ("END", end)):
        found = found.replace(word, value.replace("\n", "\n    ") if word in ("BEFORE", "AFTER") else value)
    return found


def reference(model, rows, seed=None, before=None):
    """The gradients that plain PyTorch gives."""
    torch.manual_seed(3)
    x = torch.randn(200, 6)
    y = (x.sum(1) > 0).long()
    names = {"torch": torch, "nn": torch.nn}
    exec(model, names)
    net = names["model"]
    if seed is not None:
        torch.manual_seed(seed)
    torch.nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
    return net


def floats(tensor):
    return tensor.detach().flatten().tolist()


@pytest.mark.parametrize("options", ["", "zero_copy=True"])
def test_gradients_and_initial_values_are_those_of_plain_torch(forked, options):
    task = forked(text(options=options))
    task.begin()
    task.give_initial()
    found = task.compute(0)
    net = reference(LINEAR, task.rows.of(0, 0, 200))
    for name, parameter in net.named_parameters():
        assert task.values(name) == floats(parameter)
        assert task.values(name, found) == floats(parameter.grad)
    assert task.losses[0] > 0.1


@pytest.mark.parametrize("options", ["", "zero_copy=True"])
def test_model_follows_the_run_and_keeps_its_result(forked, options):
    task = forked(text(options=options, end="print(json.dumps(model.weight.tolist())); model.weight.data.add_(1)")
                  .replace("import sys", "import sys, json"), steps=5)
    task.begin()
    task.give_initial()
    for step in range(5):
        task.step(step)
    out, _ = task.end(5)
    assert array.array("f", sum(json.loads(out), [])).tolist() == task.values("weight")


@pytest.mark.parametrize("options", ["", "zero_copy=True"])
def test_forgotten_backward_is_an_error(forked, options):
    task = forked(text(options=options).replace("    loss.backward()\n", "    if step.number != 1: loss.backward()\n"))
    task.begin()
    task.give_initial()
    task.compute(0)
    with pytest.raises(ProgramFailed, match="RuntimeError: step 1: no trained parameter has a gradient: backward"):
        task.compute(1)


WROTE = "the program wrote the parameter"


@pytest.mark.parametrize("writes", [
    {"before": "with torch.no_grad(): model.weight.clamp_(-0.01, 0.01)"},
    {"after": "with torch.no_grad(): model.weight.clamp_(-0.01, 0.01)"},
    {"before": "own.step()", "model": LINEAR + "; own = torch.optim.SGD(model.parameters(), 0.5, foreach=True)"},
    {"before": "own.step()", "model": LINEAR + "; own = torch.optim.Adam(model.parameters(), 0.5, foreach=False)"},
])
def test_write_to_a_parameter_is_warned_of_once(forked, writes):
    task = forked(text(**writes))
    task.begin()
    task.give_initial()
    first = task.compute(0)
    assert task.compute(0) == first  # it has no effect
    _, err = task.end(1)
    assert re.fullmatch(r"disttf: train.py:\d+: step 0: %s weight: the value is lost, since each step .*\n" % WROTE, err), err


@pytest.mark.parametrize("model", [
    "model = nn.utils.weight_norm(nn.Linear(6, 2))",
    "model = nn.utils.parametrizations.weight_norm(nn.Linear(6, 2))",
    "model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 2))",
    "model = nn.Sequential(nn.Unflatten(1, (2, 1, 3)), nn.Conv2d(2, 4, (1, 2)), nn.Flatten(), nn.Linear(8, 2)).to("
    "memory_format=torch.channels_last)",
    "model = torch.compile(nn.Linear(6, 2), backend='aot_eager')",
])
@pytest.mark.parametrize("options", ["", "zero_copy=True"])
def test_no_write_to_a_parameter_is_seen_where_none_is(forked, model, options):
    if "parametrizations" in model and not hasattr(torch.nn.utils.parametrizations, "weight_norm"):
        pytest.skip("this PyTorch has no such parametrization")
    task = forked(text(model, options, evaluate="run.evaluate(lambda: {'loss': model(x).sum()})", before="""
nn.utils.clip_grad_norm_(model.parameters(), 1.0)
with torch.autocast("cpu", torch.bfloat16): model(x)""", after="model.zero_grad()"), steps=3)
    task.begin()
    task.give_initial()
    for step in range(3):
        task.step(step)
        task.evaluate(step + 1)
    assert WROTE not in task.end(3)[1]


def test_write_to_parameters_is_allowed_and_forgotten(forked):
    task = forked(text(before="model.weight.data.zero_()"))
    task.begin()
    task.give_initial()
    assert task.compute(0) == task.compute(0)


NORM = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.norm, self.b = nn.Linear(6, 8), nn.BatchNorm1d(8, momentum=0.25), nn.Linear(8, 2)
    def forward(self, x):
        return self.b(torch.relu(self.norm(self.a(x))))
model = Model()
"""


@pytest.mark.parametrize("options", ["", "zero_copy=True"])
def test_batch_norm_statistics_are_those_of_the_batch(forked, options):
    task = forked(text(NORM, options, evaluate="""
@run.evaluate
def test():
    return {"loss": 1, "training": model.training, "tracked": model.norm.num_batches_tracked, "mean": model.norm.running_mean[0]}
""", end="print(model.norm.momentum, int(model.norm.num_batches_tracked), model.training)"))
    task.begin()
    momenta = {each["name"]: (each.get("momentum"), each.get("decays", True)) for each in task.variables}
    assert momenta["norm.running_mean"] == momenta["norm.running_var"] == (0.75, False)
    assert momenta["norm.weight"] == (None, True) and "norm.num_batches_tracked" not in momenta
    task.give_initial()
    assert task.values("norm.running_var") == [1] * 8
    found = task.compute(0)
    net = reference(NORM.replace("momentum=0.25", "momentum=1.0"), task.rows.of(0, 0, 200))
    assert task.values("norm.running_mean", found) == floats(net.norm.running_mean)
    assert task.values("norm.running_var", found) == floats(net.norm.running_var)
    task.apply(found)
    again = reference(NORM, task.rows.of(0, 0, 200))
    assert task.values("norm.running_var") == pytest.approx(floats(again.norm.running_var), rel=1e-6)
    assert task.evaluate(1) == {"loss": 1, "training": 0, "tracked": 1, "mean": task.values("norm.running_mean")[0]}
    assert task.compute(0) != found  # other parameters
    assert task.end(12)[0].split() == ["0.25", "12", "True"]


ODD = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.unused = nn.Linear(6, 8), nn.Linear(8, 8), nn.Linear(3, 1)
        self.c, self.out = nn.Linear(8, 8), nn.Linear(8, 2)
        self.c.weight = self.b.weight
        self.scale = nn.Parameter(torch.tensor(1.0))
        self.out.bias.requires_grad = False
        self.register_buffer("place", torch.arange(8.0) / 100)
        self.register_buffer("hidden", torch.ones(3), persistent=False)
        self.register_buffer("count", torch.tensor(5))
    def forward(self, x):
        return self.out(torch.relu(self.c(torch.relu(self.b(self.a(x) + self.place)))) * self.scale)
model = Model()
"""


@pytest.mark.parametrize("options", ["", "zero_copy=True"])
def test_tied_frozen_unused_scalar_and_constant(forked, options):
    task = forked(text(ODD, "no_decay=['*.bias'], rates={'a.*': 0.5}" + (", " + options if options else "")))
    task.begin()
    names = {each["name"]: each for each in task.variables}
    assert "b.weight" in names and "c.weight" not in names and "hidden" not in names and "count" not in names
    assert names["scale"]["shape"] == [] and names["out.bias"]["rate_factor"] == 0
    assert names["place"]["rate_factor"] == 0 and names["a.weight"]["rate_factor"] == 0.5
    assert names["a.bias"]["decays"] is False and names["a.weight"].get("decays", True)
    task.give_initial()
    for _ in range(2):
        found = task.compute(0)
        net = reference(ODD, task.rows.of(0, 0, 200))
        for name in ("a.weight", "b.weight", "scale", "out.weight"):
            assert task.values(name, found) == floats(net.get_parameter(name).grad), name
        for name in ("unused.weight", "unused.bias", "out.bias", "place"):
            assert not any(task.values(name, found)), name


def test_gradients_add_up_over_several_backwards(forked):
    task = forked(text(before="(0.5 * F.cross_entropy(model(x[rows]), y[rows])).backward()"))
    task.begin()
    task.give_initial()
    found = task.compute(0)
    net = reference(LINEAR, task.rows.of(0, 0, 200))
    assert task.values("weight", found) == pytest.approx(floats(1.5 * net.weight.grad), rel=1e-6)


@pytest.mark.parametrize("after", ["model.zero_grad()", "model.zero_grad(set_to_none=False)",
                                   "assert model.weight.grad is None"])
def test_program_cannot_spoil_a_gradient_that_it_has_pushed(forked, after):
    task = forked(text(after=after))
    task.begin()
    task.give_initial()
    assert any(task.compute(0))
    task.send(COMPUTE, step=1)
    task.receive(ASK_ROWS)
    assert any(task.gradient)


def test_autocast_gives_float32_gradients(forked):
    body = text().replace("    loss = F", "    with torch.autocast('cpu', torch.bfloat16): loss = F")
    task = forked(body)
    task.begin()
    task.give_initial()
    found = task.compute(0)
    net = reference(LINEAR, task.rows.of(0, 0, 200))
    assert task.values("weight", found) == pytest.approx(floats(net.weight.grad), abs=1e-2)
    assert task.values("weight", found) != floats(net.weight.grad)


def test_generators_are_set_before_each_step(forked):
    task = forked(text("import random, numpy\n" + LINEAR, after="print(torch.rand(1).item(), random.random(), numpy.random.rand())"))
    task.begin()
    for step in (0, 1, 0):
        task.compute(step)
    first, second, again = task.end(1)[0].splitlines()
    assert first == again and not set(first.split()) & set(second.split())


def test_dropout_repeats(forked):
    task = forked(text("model = nn.Sequential(nn.Linear(6, 50), nn.Dropout(0.5), nn.Linear(50, 2))"))
    task.begin()
    task.give_initial()
    first = task.compute(4)
    assert task.compute(5) != first and task.compute(4) == first


def test_dropout_is_that_of_the_seed(forked):
    model = "model = nn.Sequential(nn.Linear(6, 50), nn.Dropout(0.5), nn.Linear(50, 2))"
    task = forked(text(model))
    task.begin()
    task.give_initial()
    found = task.compute(4)
    net = reference(model, task.rows.of(4, 0, 200), seed=task.seed_of(4, 0))
    assert task.values("0.weight", found) == floats(net[0].weight.grad)


@pytest.mark.parametrize("model, sentence", [
    ("model = nn.Linear(6, 2).half()", "ValueError: weight is float16: a run's variables are float32"),
    ("model = nn.LazyLinear(2)", "ValueError: weight has no shape yet: call the model once"),
    ("model = nn.BatchNorm1d(6, momentum=None)", "ValueError: BatchNorm1d has momentum=None, a cumulative average"),
    ("model = nn.Embedding(6, 2, sparse=True)", "ValueError: an embedding has sparse=True"),
    ("model = nn.ReLU()", "ValueError: there is nothing to train"),
    ("model = nn.Linear(6, 2); model.register_buffer('b', torch.ones(2).double())", "b is float64"),
    ("model = nn.Linear(6, 2); model.register_parameter('e', nn.Parameter(torch.empty(0)))", "variable e has no elements"),
])
def test_models_that_cannot_be(forked, model, sentence):
    task = forked(text(model))
    with pytest.raises(ProgramFailed, match=sentence):
        task.begin()


@pytest.mark.parametrize("model, before, sentence", [
    (LINEAR + "; model.register_buffer('b', torch.ones(2))", "model.b.add_(1)", "RuntimeError: the buffer b was changed"),
    (LINEAR, "model.weight.grad = model.weight.grad.to_sparse()", "ValueError: the gradient of weight is sparse"),
    (LINEAR, "torch.amp.GradScaler('cpu').scale(loss)", "RuntimeError: GradScaler scales gradients"),
    (LINEAR, "model.weight.data = torch.zeros(2, 6)", "RuntimeError: a parameter or buffer of the model was replaced"),
])
def test_steps_that_cannot_be(forked, model, before, sentence):
    task = forked(text(model, before=before))
    task.begin()
    task.give_initial()
    with pytest.raises(ProgramFailed, match=sentence):
        task.compute(0)
        task.compute(1)


def test_constant_buffer_is_no_change_when_the_parameters_come(forked):
    task = forked(text(LINEAR + "; model.register_buffer('b', torch.ones(2))"), steps=3)
    task.begin()
    task.give_initial()
    for step in range(3):
        task.step(step)
    task.end(3)


def test_channels_last_parameters(forked):
    model = ("model = nn.Sequential(nn.Unflatten(1, (2, 1, 3)), nn.Conv2d(2, 4, (1, 2)), nn.Flatten(), nn.Linear(8, 2))"
             "{}")
    task = forked(text(model.format(".to(memory_format=torch.channels_last)"), end="print(model[1].weight.is_contiguous())"))
    task.begin()
    task.give_initial()
    found = task.compute(0)
    net = reference(model.format(""), task.rows.of(0, 0, 200))
    assert task.values("1.weight", found) == pytest.approx(floats(net[1].weight.grad), rel=1e-5, abs=1e-7)
    task.end(1)


def test_fingerprint(forked):
    task = forked(text())
    task.begin()
    found = task.hello["fingerprint"]
    assert found["framework"] == "torch " + torch.__version__ and found["threads"] == "1"
    assert found["processor"] == torch.backends.cpu.get_cpu_capability() and found["deterministic"] == "false"


def test_evaluation_has_no_gradients_and_restores_the_mode(forked):
    task = forked(text("model = nn.Sequential(nn.Linear(6, 2), nn.Dropout(0.5)); model[0].eval()", evaluate="""
@run.evaluate
def test():
    print(model.training, model[1].training, torch.is_grad_enabled())
    return {"loss": torch.tensor(0.5), "accuracy": torch.tensor(0.25)}
""", after="print(model.training, model[0].training, model[1].training, torch.is_grad_enabled())"))
    task.begin()
    task.give_initial()
    assert task.evaluate(0) == {"loss": 0.5, "accuracy": 0.25}
    task.compute(0)
    assert task.end(1)[0].splitlines() == ["False False False", "True False True True"]


DROP_IN = HEAD + '''
model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
opt = disttf.torch.Optimizer(model, evaluate=lambda: {"loss": 0.25})
count = 0
try:
    for epoch in range(100):
        for rows in torch.arange(200).split(20):
            opt.zero_grad()
            loss = F.cross_entropy(model(x[rows]), y[rows])
            (loss / 2).backward()
            (loss / 2).backward() if False else (F.cross_entropy(model(x[rows]), y[rows]) / 2).backward()
            opt.step()
            count += 1
finally:
    print("steps", count, opt.run.finished)
'''


def test_drop_in_optimizer(forked):
    task = forked(DROP_IN, steps=12, learning_rate=0.3)
    task.begin()
    assert task.hello["evaluates"] is True
    task.give_initial()
    for step in range(12):
        task.step(step)
    assert task.evaluate(12) == {"loss": 0.25}
    assert task.losses[-1] < task.losses[0] < 1.5
    assert task.end(12)[0] == "steps 11 True\n"


def test_drop_in_shows_the_loss_of_all_backwards(forked):
    task = forked(DROP_IN)
    task.begin()
    task.give_initial()
    task.compute(0)
    net = torch.nn.functional
    torch.manual_seed(3)
    x = torch.randn(200, 6)
    y = (x.sum(1) > 0).long()
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 2))
    assert task.losses == pytest.approx([net.cross_entropy(model(x[:20]), y[:20]).item()], rel=1e-6)


def test_scheduler_of_the_drop_in_optimizer_has_no_effect(forked):
    body = DROP_IN.replace("count = 0", "count = 0; sched = torch.optim.lr_scheduler.StepLR(opt, 3)").replace(
        "opt.step()", "opt.step(); sched.step(); print(sched.get_last_lr()[0])")
    task = forked(body, steps=8, learning_rate=0.5)
    task.begin()
    task.give_initial()
    for step in range(8):
        task.step(step)
    out, err = task.end(8)
    assert out.splitlines()[:4] == ["0.5", "0.5", "0.05", "0.05"]
    assert re.fullmatch(r"disttf: train.py:\d+: step 3: the program changed the optimizer's lr, without effect: .* .0.5.,.*\n",
                        err), err


def test_drop_in_optimizer_without_backward_is_an_error(forked):
    task = forked(DROP_IN.replace(".backward()", ""))
    task.begin()
    task.give_initial()
    with pytest.raises(ProgramFailed, match="RuntimeError: step 0: no trained parameter has a gradient"):
        task.compute(0)


def test_evaluation_must_return_numbers(forked):
    task = forked(text(evaluate="""
@run.evaluate
def test():
    return {"loss": torch.ones(2)}
"""))
    task.begin()
    with pytest.raises(ProgramFailed, match="TypeError: test returned a dict in which loss is a Tensor: it must be one number"):
        task.evaluate(0)


LOCAL = HEAD + '''
torch.manual_seed(3)
model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
opt = torch.optim.Adam(model.parameters(), lr=0.01)
run = disttf.torch.join(model)
start = [p.detach().clone() for p in model.parameters()]
for step in run.local_steps(4):
    rows = step.rows(200)
    opt.zero_grad()
    loss = F.cross_entropy(model(x[rows]), y[rows])
    loss.backward()
    opt.step()
    step.push(loss=loss, rows=len(rows))
    print(step.number, step.index, rows.tolist(), sep=";")
'''


def test_local_steps_push_the_difference(forked):
    task = forked(LOCAL, batch=10, learning_rate=1, steps=2)
    task.begin()
    assert {each["name"]: each.get("momentum") for each in task.variables}["1.running_var"] == 0
    task.give_initial()
    before = array.array("f", task.parameters)
    found = task.compute(0)
    task.apply(found)
    rows = task.rows.of(0, 0, 200)
    parts = [rows[0:2], rows[2:5], rows[5:7], rows[7:10]]
    torch.manual_seed(3)
    x = torch.randn(200, 6)
    y = (x.sum(1) > 0).long()
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 2))
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    for part in parts:
        opt.zero_grad()
        torch.nn.functional.cross_entropy(model(x[part]), y[part]).backward()
        opt.step()
    for name, parameter in model.named_parameters():
        assert task.values(name) == pytest.approx(floats(parameter), abs=1e-6)
    assert task.values("1.running_var") == floats(model[1].running_var)
    assert before != array.array("f", task.parameters)
    assert task.numbers[0] == {"rows": 2.5}
    out, err = task.end(1)
    assert [json.loads(line.split(";")[2]) for line in out.splitlines()] == parts
    assert WROTE not in err


@pytest.mark.parametrize("welcome, sentence", [
    ({"optimizer": "adam"}, "needs --optimizer sgd .*: the run has --optimizer adam instead of sgd$"),
    ({"learning_rate": 0.5}, "needs .* --learning_rate 1 .*: the run has --learning_rate 0.5 instead of 1$"),
    ({"learning_rate_decay": "linear"}, "needs .* --learning_rate_decay none, .* --learning_rate_decay linear instead of none$"),
    ({"warmup_steps": 7, "weight_decay": 0.5}, "has --warmup_steps 7 instead of 0, --weight_decay 0.5 instead of 0$"),
    ({"clip_norm": 2.0}, "the run has --clip_norm 2 instead of 0$"),
    ({"batch": 3}, "--batch_size is 3, too few rows for 4 local steps"),
])
def test_local_steps_need_their_flags(forked, welcome, sentence):
    task = forked(LOCAL, **dict({"learning_rate": 1}, **welcome))
    task.begin()
    with pytest.raises(ProgramFailed, match=sentence):
        task.give_initial()
        task.compute(0)


def test_local_steps_allow_no_rates(forked):
    task = forked(LOCAL.replace("join(model)", "join(model, rates={'0.*': 10})"), learning_rate=1)
    task.begin()
    with pytest.raises(ProgramFailed, match="allows no rates in join"):
        task.give_initial()


LOADER = HEAD + '''
from torch.utils.data import DataLoader, TensorDataset
class Data(TensorDataset):
    def __getitem__(self, row):
        return row, x[row] + 0 * torch.rand(1), torch.rand(1)
model = nn.Linear(6, 2)
run = disttf.torch.join(model)
loader = DataLoader(Data(x, y), batch_sampler=run.sampler(len(x)), num_workers=WORKERS, persistent_workers=WORKERS > 0)
if __name__ == "__main__":
    for step, (rows, images, noise) in run.batches(loader):
        loss = F.cross_entropy(model(images), y[rows])
        loss.backward()
        step.push(loss=loss)
        print(step.number, rows.tolist(), noise.flatten().tolist(), sep=";", flush=True)
'''


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("elastic", [False, True])
def test_loader_follows_the_run(forked, workers, elastic):
    task = forked(LOADER.replace("WORKERS", str(workers)), steps=9, elastic=elastic)
    task.begin()
    task.give_initial()
    order = (0, 1, 2, 3, 1, 2, 3, 4, 8)  # rolled back, then far ahead
    for step in order:
        task.compute(step)
    lines = [line.split(";") for line in task.end(9)[0].splitlines()]
    assert [int(line[0]) for line in lines] == list(order)
    assert [json.loads(line[1]) for line in lines] == [task.rows.of(step, 0, 200) for step in order]
    noise = {}
    for number, _, values in lines:
        assert noise.setdefault(number, values) == values  # what is drawn while loading repeats, too
    assert len(set(noise.values())) == len(noise)
    assert max(step for step, _ in task.asked) < 9
    if workers and not elastic:
        assert (4, 0) in task.asked[:6]  # it ran ahead


def test_loader_draws_the_same_with_and_without_workers(forked):
    outputs = []
    for workers in (0, 2):
        task = forked(LOADER.replace("WORKERS", str(workers)), steps=3)
        task.begin()
        for step in range(3):
            task.compute(step)
        outputs.append(task.end(3)[0])
    assert outputs[0] == outputs[1] and len(outputs[0].splitlines()) == 3


def test_load_gives_a_state_dict(tmp_path):
    import disttf.torch
    from test_numpy import checkpoint
    names = {"torch": torch, "nn": torch.nn}
    exec(ODD, names)
    model = names["model"]
    entries = {name: tensor.detach().numpy() + 1 for name, tensor in disttf.torch.named_tensors(model) if tensor.is_floating_point()}
    checkpoint(tmp_path / "checkpoint-00000001", [entries], [], {name: list(each.shape) for name, each in entries.items()})
    expected = {name: tensor.detach().clone() + 1 for name, tensor in model.named_parameters()}
    print(model.load_state_dict(disttf.torch.load(tmp_path, model)))
    assert all(torch.equal(tensor, expected[name]) for name, tensor in model.named_parameters())
    assert torch.equal(model.c.weight, model.b.weight) and int(model.count) == 5
    norm = torch.nn.BatchNorm1d(2)
    entries = {name: tensor.detach().numpy() for name, tensor in norm.state_dict().items() if tensor.is_floating_point()}
    checkpoint(tmp_path / "norm" / "checkpoint-00000007", [entries], [], {name: [2] for name in entries}, step=7)
    norm.load_state_dict(disttf.torch.load(tmp_path / "norm"))  # num_batches_tracked is not needed
    assert int(norm.num_batches_tracked) == 0


def test_load_gives_the_step_as_num_batches_tracked(tmp_path):
    """As a program has it at the end of its run."""
    import disttf.torch
    from test_numpy import checkpoint, tensors
    norm = torch.nn.BatchNorm1d(2)
    entries = {name: tensor.detach().numpy() for name, tensor in norm.state_dict().items() if tensor.is_floating_point()}
    checkpoint(tmp_path / "run" / "checkpoint-00000007", [entries], [], {name: [2] for name in entries}, step=7)
    norm.load_state_dict(disttf.torch.load(tmp_path / "run", norm))
    assert int(norm.num_batches_tracked) == 7 and norm.num_batches_tracked.dtype == torch.int64
    exported = tmp_path / "exported.safetensors"
    exported.write_bytes(tensors(entries, {"disttf_format": "1", "step": "9"}))
    assert int(disttf.torch.load(exported, norm)["num_batches_tracked"]) == 9
    exported.write_bytes(tensors(entries, {"step": "9"}))  # another program's: the model's own value
    assert int(disttf.torch.load(exported, norm)["num_batches_tracked"]) == 7


def test_write_to_zero_copy_parameters_is_a_segmentation_fault(forked):
    """The document says so; zero_copy is off by default."""
    task = forked(text(options="zero_copy=True", before="model.weight.data.zero_()"))
    task.begin()
    task.give_initial()
    with pytest.raises(AssertionError, match="closed its socket"):
        task.compute(0)
    task.process.communicate()
    assert task.process.returncode == -11


def test_compiled_model_keeps_its_names():
    import disttf.torch
    model = torch.nn.Linear(6, 2)
    wrapper = torch.nn.Module()
    wrapper._orig_mod = model
    assert [name for name, _ in disttf.torch.named_tensors(disttf.torch.inner_model(wrapper))] == ["weight", "bias"]
