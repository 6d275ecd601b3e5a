"""What Dragon's own classes answer, without its runtime: run by test_python_dragon_itself.py with the Python that
has dragonhpc.

Reads JSON: "values", the arguments of Telemetry.add_data() one after the other, and "questions", those of
AnalysisClient.get_data(). Prints the answers as JSON. Telemetry, the application that stores, the server
that answers and the client are Dragon's; in place of HTTP and of its queues they call each other.
"""

import atexit
import json
import os
import shutil
import sqlite3
import sys
import tempfile
import types

DIRECTORY = tempfile.mkdtemp(prefix="sonde-dragon-")
atexit.register(shutil.rmtree, DIRECTORY)
os.environ["DRAGON_TELEMETRY_CONFIG"] = f"{DIRECTORY}/telemetry.yaml"
os.environ["DRAGON_TELEMETRY_LEVEL"] = "2"
with open(os.environ["DRAGON_TELEMETRY_CONFIG"], "w", encoding="utf-8") as config:
    config.write(f"default_tmdb_dir: {DIRECTORY}\n")

import requests  # noqa: E402

import dragon  # noqa: E402, F401
from dragon.telemetry import analysis, analysis_server, dragon_server, telemetry, tsdb_app  # noqa: E402

DATABASE = tsdb_app.app.connection
DATABASE.execute("CREATE TABLE datapoints (metric varchar(50), timestamp varchar(30), value real, tags json)")


def post(url, json):
    return tsdb_app.app.test_client().post(url, json=json)


requests.get = lambda url, timeout=None: None  # the server is ready
requests.post = post


class Server:
    """Answers a client's request at once."""

    offline_telemetry_args = None
    query = dragon_server.DragonServer.query
    get_metrics_from_db = dragon_server.DragonServer.get_metrics_from_db

    def put(self, message):
        request, answers = message
        body = analysis_server.AnalysisServer._transform_request(None, request)
        cursor = sqlite3.connect(tsdb_app.app.filename).cursor()
        if request["type"] == "suggest":
            body["result"] = self.get_metrics_from_db(cursor)
        else:
            body["result"] = self.query(body, DATABASE, cursor)
        answers.append([body])


def main():
    asked = json.load(sys.stdin)
    recorder = telemetry.Telemetry()
    for arguments in asked["values"]:
        recorder.add_data(**arguments)
    answers = []
    client = object.__new__(analysis.AnalysisClient)  # without its queue, which needs the runtime
    client._request_conn = Server()
    client._data_queue = types.SimpleNamespace(append=answers.append, get=answers.pop)
    analysis.log = types.SimpleNamespace(debug=lambda text: None)
    found = [client.get_data(**question) for question in asked["questions"]]
    print(json.dumps({"data": found, "metrics": sorted(client.get_metrics())}))


main()
