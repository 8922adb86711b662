#!/usr/bin/env python3
"""Serves a model of 784 pixels in a common way: onnxruntime behind uvicorn, a bare ASGI application.

POST /v1/models/...:predict takes {"instances": [[784 numbers], ...]} and returns {"predictions": [...]};
POST /bytes takes 784 bytes and returns one float32 for each class. Exits with 77 if a package is missing.
"""
import argparse
import json
import os
import sys

try:
    import numpy
    import onnxruntime
    import uvicorn
except ImportError as missing:
    print(f"{sys.executable} lacks a package: {missing}")
    sys.exit(77)

MODEL = "DISTTF_BENCH_MODEL"  # the environment variable that tells worker processes the model file
JSON = [(b"content-type", b"application/json")]
BYTES = [(b"content-type", b"application/octet-stream")]


def open_model(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # the fastest for one row: more threads wait for each other
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


class Application:
    def __init__(self):
        self.model = None

    def ask(self, rows):
        if self.model is None:
            self.model = open_model(os.environ[MODEL])
            self.input = self.model.get_inputs()[0]
            self.outputs = [each.name for each in self.model.get_outputs()]
        shape = [len(rows)] + [each for each in self.input.shape[1:]]
        answers = self.model.run(None, {self.input.name: rows.reshape(shape)})
        return answers[self.outputs.index("probabilities")]

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return
        body = b""
        more = True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        if scope["path"] == "/bytes":
            rows = numpy.frombuffer(body, numpy.uint8).astype(numpy.float32).reshape(1, -1)
            answer, fields = self.ask(rows).tobytes(), BYTES
        else:
            rows = numpy.asarray(json.loads(body)["instances"], numpy.float32)
            answer, fields = json.dumps({"predictions": self.ask(rows).tolist()}).encode(), JSON
        fields = fields + [(b"content-length", str(len(answer)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": fields})
        await send({"type": "http.response.body", "body": answer})


application = Application()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="an ONNX file, as disttf export writes it")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--workers", type=int, default=1)
    arguments = parser.parse_args()
    os.environ[MODEL] = arguments.model
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, here)
    uvicorn.run("onnx_uvicorn:application", app_dir=here, host="127.0.0.1", port=arguments.port,
                workers=arguments.workers, log_level="error", access_log=False)


if __name__ == "__main__":
    main()
