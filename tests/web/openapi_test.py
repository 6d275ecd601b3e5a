"""/api/openapi.json against real answers: every operation is asked with its own example, and what
comes back must have the shape that is described; so must errors.

openapi_test.py API_SERVER
The document itself is checked by openapi-spec-validator, in an environment that scripts/prepare makes;
without that this one test is skipped. Needs python3-jsonschema.
"""

import json
import os
import pathlib
import subprocess
import sys
import unittest
import urllib.error
import urllib.parse
import urllib.request

import jsonschema

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import made  # noqa: E402  (of tests/, for which the path had to be set)

SERVER = sys.argv[1] if len(sys.argv) > 1 else ""
TOKEN = "api-test"


def ask(server, method, target, body=None, token=TOKEN):
    """Status, headers and body."""
    headers = {"Authorization": f"Bearer {token}"}
    if body is not None:
        headers["Content-Type"] = "application/json"
    request = urllib.request.Request(server + target, method=method.upper(), headers=headers,
                                     data=None if body is None else json.dumps(body).encode())
    try:
        answer = urllib.request.urlopen(request, timeout=30)
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        stream = answer.headers["Content-Type"] == "text/event-stream"
        return answer.status, answer.headers, b"" if stream else answer.read()


class OpenApi(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # /queue/list runs squeue.
        path = f"{pathlib.Path(__file__).parent / 'standins'}:{os.environ['PATH']}"
        cls.process = subprocess.Popen([SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       text=True, env={**os.environ, "PATH": path})
        cls.servers = cls.process.stdout.readline().split()
        cls.api = json.loads(ask(cls.servers[0], "get", "/api/openapi.json")[2])

    @classmethod
    def tearDownClass(cls):
        cls.process.communicate("")

    def operations(self):
        """In an order in which there is something to read and to delete."""
        found = [(path, method, operation) for path, item in self.api["paths"].items()
                 for method, operation in item.items()]
        return sorted(found, key=lambda one: (one[0].endswith("/del"), one[1] != "post"))

    def check(self, schema, value):
        whole = {"$ref": "#/x", "x": schema, "components": self.api["components"]}
        jsonschema.Draft202012Validator(whole).validate(value)

    def check_error(self, body):
        self.check({"$ref": "#/components/schemas/Error"}, json.loads(body))

    def check_answer(self, operation, status, headers, body):
        responses = operation["responses"]
        self.assertIn(str(status), responses)
        content = responses[str(status)].get("content")
        if content is None:
            return self.assertEqual(body, b"")
        kind = headers["Content-Type"].split(";")[0]
        self.assertEqual([kind], list(content))
        if kind == "application/json":
            self.check(content[kind]["schema"], json.loads(body))
        return None

    def test_answers_have_the_shapes_that_are_described(self):
        for path, method, operation in self.operations():
            with self.subTest(f"{method} {path}"):
                body = None
                if "requestBody" in operation:
                    content = operation["requestBody"]["content"]["application/json"]
                    body = content.get("example", {})
                    self.check(content["schema"], body)
                good = 0
                for server in self.servers:
                    status, headers, text = ask(server, method, path + operation.get("x-example", ""),
                                                body)
                    if status < 400:
                        good += 1
                        self.check_answer(operation, status, headers, text)
                    else:
                        self.check_error(text)
                self.assertGreater(good, 0, "the example is answered by neither server")

    def test_examples_use_parameters_that_are_described(self):
        for path, method, operation in self.operations():
            names = {one["name"] for one in operation["parameters"]}
            example = urllib.parse.parse_qs(operation.get("x-example", "?")[1:],
                                            keep_blank_values=True)
            needed = {one["name"] for one in operation["parameters"] if one["required"]}
            self.assertLessEqual(set(example), names, f"{method} {path}")
            if method == "get":
                self.assertLessEqual(needed, set(example), f"{method} {path}")

    def test_errors_have_theirs(self):
        server = self.servers[0]
        for path, method, operation in self.operations():
            body = {} if method == "post" else None
            status, headers, text = ask(server, method, path, body, token="wrong")
            if operation.get("security") == []:  # the page, for everybody
                self.assertEqual((status, method), (200, "get"), path)
                self.assertRegex(path, r"^/$|\.(js|css)$|/LICENSE$")
            else:
                self.assertEqual(status, 401, path)
                self.assertIn("Bearer", headers["WWW-Authenticate"])
                self.check_error(text)
                self.assertIn("401", operation["responses"])
            status, headers, text = ask(server, "patch", path, body)
            self.assertEqual(status, 405, path)
            self.assertTrue(headers["Allow"])
            self.check_error(text)
        for target in ("/nothing", "/job?job=99.9", "/api/query", "/api/v1/series?job=4711.0"):
            status, _, text = ask(server, "get", target)
            self.assertIn(status, (400, 404), target)
            self.check_error(text)

    def test_the_document_is_valid(self):
        place = made.place("openapi-validator")
        if place is None:
            self.skipTest(made.why("openapi-validator"))
        done = subprocess.run([place / "bin" / "python", "-m", "openapi_spec_validator", "-"], check=False, text=True,
                              input=json.dumps(self.api), capture_output=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
