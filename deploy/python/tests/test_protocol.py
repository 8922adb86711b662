"""The client without a framework: bytes, exceptions, ends, forks. Needs only Python."""
import array
import re
import subprocess
import sys

import pytest

from disttf import _protocol as protocol
from fake_task import COMPUTE, GRADIENT, INITIAL, ROWS, ProgramFailed

# A program of two variables without a framework. BODY is what it does in a step.
RUN = '''
    import array, os, sys, time
    import disttf._run as core
    from disttf import Variable

    class Run(core.BaseRun):
        def _variables(self):
            return [Variable("w", (3,)), Variable("b", (), decays=False, rate_factor=0.5)]
        def _map(self):
            self.g = memoryview(self._client.gradient).cast("f")
            self.p = memoryview(self._client.parameters).cast("f")
        def _write_initial(self):
            self.g[0:3] = array.array("f", [1, 2, 3]); self.g[16] = 4
        def _read_parameters(self):
            self.w = list(self.p[0:3])

    def push(step, loss=0.5, **numbers):
        step.run.g[0:3] = array.array("f", [1, 1, 1]); step.run.g[16] = 2
        step._push(loss, numbers)

    run = Run("nothing 1", None, ROWS)
    EVALUATE
    for step in run:
        BODY
    print("over at", run.number, run.w, run.p[16])
'''


def text(body="push(step)", rows="10", evaluate="", head=""):
    return head + RUN.replace("BODY", body).replace("ROWS", rows).replace("EVALUATE", evaluate)


def test_header_has_the_documented_bytes():
    packet = protocol.encode(5, b"{}", step=1, slot=2, value=2.5)
    assert packet.hex() == ("44545031" "0500" "0000" "02000000" "00000000" "0100000000000000" "0200000000000000" +
                            "00" * 16 + "0000000000000440" + "00" * 8 + "7b7d")
    message, value = protocol.decode(packet)
    assert (message.kind, message.step, message.slot, message.body, value) == (5, 1, 2, b"{}", 2.5)


@pytest.mark.parametrize("packet", [b"", b"DTP1", b"DTP2" + bytes(60), b"DTP1" + bytes(60) + b"x",
                                    b"DTP1" + bytes(2) + b"\1\0" + bytes(56), b"DTP1" + bytes(59) + b"\1"])
def test_malformed_packet_is_refused(packet):
    with pytest.raises(protocol.ProtocolError):
        protocol.decode(packet)


def test_hello_says_that_the_package_is_a_checkout(program):
    task = program(text())
    task.begin()
    assert task.hello["client"] == "python checkout, nothing 1"


def test_variables_begin_at_multiples_of_16_floats():
    variables = [protocol.Variable("a", (3, 5)), protocol.Variable("b", ()), protocol.Variable("c", (17,))]
    assert protocol.offsets_of(variables) == ([0, 16, 32], 64)


def test_layout_and_initial_values(program):
    task = program(text())
    task.begin()
    assert [(each["name"], each["shape"], each.get("decays", True), each.get("rate_factor", 1)) for each in
            task.variables] == [("w", [3], True, 1), ("b", [], False, 0.5)]
    assert task.hello["rows"] == 10 and task.hello["evaluates"] is False
    task.give_initial()
    assert task.values("w") == [1, 2, 3] and task.values("b") == [4]


def test_run_to_its_end(program):
    task = program(text())
    task.begin()
    task.give_initial()
    for step in range(20):
        task.step(step)
    out, err = task.end(20)
    assert out.startswith("over at 20 [-1.0") and err == ""


def test_steps_may_go_back(program):
    task = program(text("print(step.number); push(step)"))
    task.begin()
    for step in (0, 1, 2, 1, 2):
        task.step(step)
    assert task.end(3)[0].split()[:5] == ["0", "1", "2", "1", "2"]


def test_rows_come_with_compute(program):
    task = program(text("print(list(step.row_numbers())); push(step)"))
    task.begin()
    task.compute(3)
    assert task.asked == []
    assert str(task.rows.of(3, 0, 10)) in task.end(4)[0]


def test_rows_are_asked_for_once_and_come_with_compute_then(program):
    task = program(text("print(list(step.row_numbers(10))); push(step)", rows="None"))
    task.begin()
    for step in range(3):
        task.compute(step)
    out, _ = task.end(3)
    assert task.asked == [(0, 0)]
    assert [str(task.rows.of(step, 0, 10)) for step in range(3)] == out.splitlines()[:3]


def test_rows_of_two_data_sets_are_always_asked_for(program):
    task = program(text("print(list(step.row_numbers(10)), list(step.row_numbers(20))); push(step)"))
    task.begin()
    for step in range(2):
        task.compute(step)
    out, _ = task.end(2)
    assert task.asked == [(0, 0), (1, 0), (1, 0)]
    assert out.splitlines()[1] == "%s %s" % (task.rows.of(1, 0, 10), task.rows.of(1, 0, 20))


def test_rows_without_their_number_are_an_error(program):
    task = program(text("step.row_numbers()", rows="None"))
    task.begin()
    with pytest.raises(ProgramFailed, match="TypeError: step.rows.. needs the number of rows"):
        task.compute(0)


def test_message_between_question_and_rows_waits(program):
    task = program(text("print(list(run._client.ask_rows(5, 0, 10))); push(step)"))
    task.begin()
    task.send(COMPUTE, step=0)
    assert task.receive(protocol.ASK_ROWS)[2] == 5
    task.send(COMPUTE, step=1)  # as a task does not, today
    task.answer_rows(5, 0, 10)
    task.receive(GRADIENT)
    assert task.receive(protocol.ASK_ROWS)[2] == 5
    task.send(ROWS, array.array("I", [7]).tobytes(), step=5, count=1)
    assert task.receive(GRADIENT)[2] == 1


def test_numbers_and_evaluation(program):
    task = program(text("push(step, 0.25, norm=2, bad=float('nan'))", evaluate="""
    @run.evaluate
    def test():
        return {"loss": 0.5, "accuracy": sum(run.w), "bad": float("inf")}
"""))
    task.begin()
    task.give_initial()
    assert task.hello["evaluates"] is True
    assert task.evaluate(0) == {"loss": 0.5, "accuracy": 6.0}
    task.step(0)
    assert task.losses == [0.25] and task.numbers == [{"norm": 2.0}]


def test_program_that_does_not_evaluate_answers_with_nothing(program):
    task = program(text())
    task.begin()
    assert task.evaluate(0) == {}


@pytest.mark.parametrize("body, sentence", [
    ("raise ValueError('the text')", r"train.py:\d+: ValueError: the text"),
    ("raise ValueError('two\\nlines')", r"train.py:\d+: ValueError: two lines"),
    ("import json; json.loads('{')", r"train.py:\d+: json.decoder.JSONDecodeError: Expecting"),
    ("pass", r"train.py:\d+: RuntimeError: step 0: the loop's body ended without step.push"),
    ("push(step); push(step)", r"train.py:\d+: RuntimeError: step 0: push.. was called twice"),
    ("push(step, **{'n%d' % i: 1 for i in range(33)})", r"train.py:\d+: ValueError: push.. takes at most 32 numbers .got 33"),
    ("run.evaluate(print)", r"train.py:\d+: RuntimeError: run.evaluate must come before the loop"),
])
def test_exception_is_reported_and_ends_the_program_with_1(program, body, sentence):
    task = program(text(body))
    task.begin()
    with pytest.raises(ProgramFailed) as failed:
        task.compute(0)
        task.compute(1)
    assert re.match(sentence, str(failed.value)), failed.value
    _, err = task.wait(1)
    assert err.startswith("Traceback (most recent call last)")


@pytest.mark.parametrize("folder", ["site-packages", "dist-packages"])
def test_exception_in_a_library_names_the_users_line(program, tmp_path, folder):
    """A library may lie outside the interpreter's own folder, as that of another virtual environment."""
    library = tmp_path / folder / "library"
    library.mkdir(parents=True)
    (library / "__init__.py").write_text("def fail():\n    raise OSError('no driver')\n")
    task = program("import sys, disttf\nsys.path.append(%r)\nimport library\nlibrary.fail()\n" % str(library.parent))
    with pytest.raises(ProgramFailed, match="^train.py:4: OSError: no driver"):
        task.begin()


@pytest.mark.parametrize("value, sentence", [
    ("None", "test returned None: an evaluation function must return a dict of numbers, such as"),
    ("0.5", "test returned a float: an evaluation function must return a dict"),
    ("[0.5]", "test returned a list: an evaluation function must return a dict"),
    ("{'loss': 0.5, 'accuracy': None}", "test returned a dict in which accuracy is a NoneType: it must be one number"),
])
def test_evaluation_must_return_numbers(program, value, sentence):
    task = program(text(evaluate="""
    @run.evaluate
    def test():
        return %s
""" % value))
    task.begin()
    with pytest.raises(ProgramFailed, match=r"train.py:\d+: TypeError: " + sentence):
        task.evaluate(0)


def test_exception_before_the_run_is_reported(program):
    task = program("import disttf\nraise OSError('no data')\n")
    with pytest.raises(ProgramFailed, match="train.py:2: OSError: no data"):
        task.begin()
    task.wait(1)


def test_interrupt_is_silent(program):
    task = program(text("raise KeyboardInterrupt"))
    task.begin()
    with pytest.raises(AssertionError, match="closed its socket"):
        task.compute(0)
    out, err = task.process.communicate()
    assert err == b"" and task.process.returncode != 0


@pytest.mark.parametrize("body, code", [("break", 0), ("sys.exit(3)", 3)])
def test_program_that_ends_too_early_says_where(program, body, code):
    task = program(text("push(step)\n        if step.number == 2: %s" % body), steps=9)
    task.begin()
    for step in range(3):
        task.compute(step)
    with pytest.raises(ProgramFailed, match="ended at step 2 of 9, before the run was over"):
        task.receive(GRADIENT)
    task.wait(code)


def test_refusal_is_printed_and_its_code_taken(program):
    task = program(text())
    task.handshake()
    _, err = task.refuse("variable 1 is b [], the chief's is b [3]", 2)
    assert err == "disttf: variable 1 is b [], the chief's is b [3]\n"


@pytest.mark.parametrize("when", ["handshake", "begin"])
def test_end_of_the_task_ends_the_program(program, when):
    task = program(text())
    getattr(task, when)()
    task.socket.close()
    out, err = task.process.communicate(timeout=60)
    assert task.process.returncode == 1
    assert err == b"disttf: the task that this program computes for has ended\n" and out == b""


def test_program_started_by_hand_says_how(alone):
    found = alone(text(), "--rate", "1")
    assert found.returncode == 2
    assert "start it with: disttf launch --program -- python3 " in found.stderr
    assert found.stderr.endswith("train.py --rate 1\n") and "Traceback" not in found.stderr


def test_forked_children_have_no_socket_and_may_not_talk(program):
    task = program(text("""
        if os.fork() == 0:
            try:
                push(step)
                os.write(1, b"sent ")
            except RuntimeError as error:
                os.write(1, str(error).encode())
            try:
                os.fstat(run._client.fd)
                os.write(1, b" open")
            except OSError:
                os.write(1, b" closed")
            os._exit(0)
        os.wait()
        push(step)"""))
    task.begin()
    task.compute(0)
    out, _ = task.end(1)
    assert out.startswith("a forked process may not use the run of its parent closed")


def test_programs_that_are_started_have_neither_socket_nor_variable(program):
    task = program(text("""
        import subprocess
        print(subprocess.run(["sh", "-c", "echo [$DISTTF_PROGRAM_FD]; ls /proc/self/fd"], close_fds=False,
                             stdout=subprocess.PIPE).stdout.decode().split(), run._client.fd)
        push(step)"""))
    task.begin()
    task.compute(0)
    line = task.end(1)[0].splitlines()[0]
    found = re.match(r"\['\[\]'(.*)\] (\d+)$", line)
    assert found and "'%s'" % found.group(2) not in found.group(1), line


def test_spare_waits_for_welcome_with_its_data_loaded(program):
    task = program(text(), env={"DISTTF_PROGRAM_SPARE": "1"})
    task.handshake()
    assert task.process.poll() is None
    task.send_welcome()
    task.compute(7)
    task.end(8)


def test_info_has_welcome(program):
    task = program(text("print(run.info['batch_size'], run.info['is_chief']); push(step)"), batch=12)
    task.begin()
    task.compute(0)
    assert task.end(1)[0].startswith("12 True")


def test_wrong_size_in_welcome_is_refused(program):
    task = program(text())
    task.handshake()
    task.welcome["size"] = 33
    task.size += 16
    task.send_welcome()
    with pytest.raises(ProgramFailed, match="ProtocolError: WELCOME is of protocol 1 and 33 floats"):
        task.receive(INITIAL)


def test_import_is_cheap():
    """Modules, not time: `import disttf` alone loads neither NumPy nor a framework, nor json, socket and typing."""
    code = "import sys; old = set(sys.modules); import disttf; print(*sorted(set(sys.modules) - old))"
    found = subprocess.run([sys.executable, "-S", "-c", code], stdout=subprocess.PIPE, check=True,
                           env={"PYTHONPATH": str(__file__).rsplit("/", 2)[0]}).stdout.decode().split()
    assert not {"numpy", "torch", "json", "socket", "mmap", "typing"} & set(found), found
