# Usage: serve_clients.py PORT VERSION
#
# Sends requests to a service with Triton's own client, with both kinds of tensors, and in the form of
# TensorFlow Serving's examples. The model takes 28x28 images and predicts VERSION % 10 (serve_test.cc).
import json
import sys
import urllib.request

import numpy as np
import tritonclient.http as triton

port, version = int(sys.argv[1]), int(sys.argv[2])
images = (np.arange(3 * 784) * 7 % 256).astype(np.uint8).reshape(3, 28, 28, 1)


def post(path, body):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=json.dumps(body).encode())
    with urllib.request.urlopen(request) as reply:
        return json.loads(reply.read())


rest = np.array(post("/v1/models/default:predict", {"instances": images.tolist()})["predictions"], np.float32)
assert rest.shape == (3, 10) and (rest.argmax(1) == version % 10).all(), rest
columns = post("/v1/models/default:predict", {"signature_name": "serving_default", "inputs": images.tolist()})
assert (np.array(columns["outputs"], np.float32) == rest).all()

client = triton.InferenceServerClient(f"127.0.0.1:{port}")
assert client.is_server_live() and client.is_server_ready()
assert client.is_model_ready("default") and client.is_model_ready("default", str(version))
assert not client.is_model_ready("other")
assert client.get_server_metadata()["name"] == "disttf"
metadata = client.get_model_metadata("default")
assert metadata["versions"] == [str(version)], metadata
name, output = metadata["inputs"][0]["name"], metadata["outputs"][0]["name"]

for datatype, values in (("UINT8", images), ("FP32", images.astype(np.float32)), ("INT64", images.astype(np.int64))):
    for is_binary in (True, False):
        tensor = triton.InferInput(name, list(values.shape), datatype)
        tensor.set_data_from_numpy(values, binary_data=is_binary)
        wanted = triton.InferRequestedOutput(output, binary_data=is_binary)
        result = client.infer("default", [tensor], outputs=[wanted], request_id="7")
        assert (result.as_numpy(output) == rest).all(), (datatype, is_binary)
        assert result.get_response()["id"] == "7"

tensor = triton.InferInput(name, list(images.shape), "UINT8")
tensor.set_data_from_numpy(images)
for compression in ("gzip", None):
    result = client.infer(
        "default", [tensor], model_version=str(version),
        request_compression_algorithm=compression, response_compression_algorithm=compression)
    assert (result.as_numpy(output) == rest).all()
top = client.infer("default", [tensor], outputs=[triton.InferRequestedOutput(output, class_count=2)])
assert top.as_numpy(output).shape == (3, 2)
assert top.as_numpy(output)[0][0].decode().split(":")[1] == str(version % 10)

try:
    client.infer("default", [tensor], model_version="999")
    raise AssertionError("version 999 has answered")
except triton.InferenceServerException as error:
    assert "999" in str(error), error
print("all as expected")
