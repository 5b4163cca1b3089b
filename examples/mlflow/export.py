"""Writes models that `trainer fit` wrote to an MLflow server, each as a run with parameters, metrics, card, report and model:
MLFLOW_TRACKING_URI=http://127.0.0.1:5000 python export.py drill.flank"""

import json
import numbers
import sys
from pathlib import Path

from mlflow import MlflowClient


def flat(name, value):
    """Yields the leaves of nested objects, each with its path. A list is a leaf."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from flat(f"{name}.{key}" if name else key, inner)
    elif value is not None:
        yield name, value


def export(client, model, experiment="flank"):
    """Writes one run, unless the experiment has one of this model. Returns the id of the run."""
    report_file = model.with_suffix(".report.json")
    report = json.loads(report_file.read_text())
    provenance = report["provenance"]
    found = client.get_experiment_by_name(experiment)
    where = found.experiment_id if found else client.create_experiment(experiment)
    for run in client.search_runs([where], f"tags.`flank.model` = '{report['model']}' and attributes.status = 'FINISHED'"):
        return run.info.run_id
    tags = {"flank.model": report["model"], "flank.label": report.get("label", ""), "flank.verdict": (report.get("verdict") or {}).get("level", "")}
    tags |= {f"flank.data.{d['name']}": f"sha256:{d['sha256']}" for d in provenance["data"] if d.get("sha256")}
    run = client.create_run(where, run_name=report["model"], tags=tags).info.run_id
    for name, value in flat("", provenance["config"]):
        client.log_param(run, name, value)
    # Of tools held out; docs/how-to/evaluate.md says what each counts.
    parts = {name: report.get(name) for name in ("pooled", "alarms", "robustness")}
    parts |= {"wear": (report.get("wear_trend") or {}).get("score"), "counting_unknown": (report.get("unknown") or {}).get("decided")}
    for name, value in flat("", parts):
        if isinstance(value, numbers.Number) and not isinstance(value, bool):
            client.log_metric(run, name, value)
    for file in (model, report_file, model.with_suffix(".report.html")):
        client.log_artifact(run, str(file))
    client.set_terminated(run)
    return run


if __name__ == "__main__":
    for file in sys.argv[1:]:
        print(export(MlflowClient(), Path(file)))
