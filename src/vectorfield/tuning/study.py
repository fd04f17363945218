"""`Study`: trials kept in a study of Optuna, so that a search goes on where it stopped."""

from __future__ import annotations

import base64
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from vectorfield._errors import MissingExtraError
from vectorfield._settings import Settings
from vectorfield.tuning import candidates
from vectorfield.tuning.bench import Bench
from vectorfield.tuning.fingerprint import fingerprint, library
from vectorfield.tuning.tasks import Task
from vectorfield.tuning.trials import Trial

__all__ = ["Record", "Study"]


@dataclass(frozen=True)
class Study(Settings):
    """Where the trials of searches are kept: a study of Optuna (the extra ``search``).

    A search proposes the same plans in the same order each time. One that is run again takes what
    is stored in place of judging it, and so goes on where it was stopped or killed; its report is
    that of a search which was not. A trial is found again by a digest of the data, the folds, the
    plan, its ladder of ridges, the objective and the library's code: with any other there is
    nothing to find. So a study may hold many searches.

    In Optuna's dashboard a trial has the ridge level, the steps of data and a single length scale
    for parameters, and the parts of the plan, the stage and the status for attributes. Failed plans
    are failed trials.

    Args:
        storage: an SQLite file, which is made where there is none; or the URL of any other storage
            of Optuna, such as ``postgresql://...``.
        name: of the study.

    Example:
        >>> import numpy as np, tempfile, vectorfield as vf
        >>> t = np.linspace(0.0, 6.0, 61)
        >>> xs = [a * np.stack([np.cos(t), -np.sin(t)], axis=1) for a in (0.5, 1.0, 1.5, 2.0)]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = vf.tuning.Study(f"{folder}/circles.db")
        ...     model = vf.MOCK(vf.kernels.Linear(), search=vf.Search(folds=2, study=study))
        ...     first, again = (model.fit(xs, t).report_ for _ in range(2))
        >>> [a.seconds == b.seconds for a, b in zip(first.trials, again.trials)].count(False)
        0
    """

    storage: str | os.PathLike[str] = "vectorfield-search.db"
    name: str = "vectorfield"

    def __post_init__(self) -> None:
        for field in ("storage", "name"):
            value = getattr(self, field)
            kinds = (str, os.PathLike) if field == "storage" else (str,)
            if not isinstance(value, kinds) or not str(value):
                raise TypeError(f"{field} must be a text that is not empty, got {value!r}")

    @property
    def url(self) -> str:
        """The storage as a URL."""
        text = os.fspath(self.storage)
        return text if "://" in text else f"sqlite:///{Path(text).absolute()}"

    @contextmanager
    def open(self) -> Iterator[Record]:
        """Give the record of trials, and close the storage in the end."""
        optuna = _optuna()
        file = None if "://" in os.fspath(self.storage) else Path(self.storage).absolute()
        if file is not None and not file.parent.is_dir():
            raise FileNotFoundError(
                f"storage={os.fspath(self.storage)!r}: there is no folder {file.parent}; make it "
                "first"
            )
        before = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        url = self.url
        storage: Any = url
        if not url.startswith("redis"):  # a relational one is kept, to be closed in the end
            patient = {"connect_args": {"timeout": 60}} if url.startswith("sqlite") else None
            storage = optuna.storages.RDBStorage(url, engine_kwargs=patient)
        try:
            study = optuna.create_study(
                storage=storage, study_name=self.name, direction="minimize", load_if_exists=True
            )
            yield Record(study)
        finally:
            optuna.logging.set_verbosity(before)
            if storage is not url:
                storage.remove_session()
                storage.engine.dispose()


class Record:
    """The trials of a study of Optuna, by what was judged."""

    def __init__(self, study: Any) -> None:
        self._study = study
        self._stored: dict[str, dict[int, dict[str, Any]]] = {}
        for trial in study.get_trials(deepcopy=False):
            if "key" in trial.user_attrs:
                self._index(trial.user_attrs)

    def find(self, bench: Bench, task: Task, substeps: int) -> list[Trial] | None:
        """Return the trials of a task, if all of them are there."""
        found = self._stored.get(_key(bench, task, substeps), {})
        if not found or len(found) < next(iter(found.values()))["of"]:
            return None
        return [_restored(task, place, found[place]) for place in sorted(found)]

    def keep(self, bench: Bench, task: Task, substeps: int, trials: Sequence[Trial]) -> None:
        """Store the trials of a task."""
        optuna = _optuna()
        key = _key(bench, task, substeps)
        for place, trial in enumerate(trials):
            attributes = {"key": key, "place": place, "of": len(trials), **_described(trial)}
            numbers, spaces = _parameters(optuna, bench, task, trial)
            state = optuna.trial.TrialState
            stored = optuna.create_trial(
                state=state.COMPLETE if trial.ok else state.FAIL,
                value=trial.score if trial.ok else None,
                params=numbers,
                distributions=spaces,
                user_attrs=attributes,
            )
            self._study.add_trial(stored)
            self._index(attributes)

    def _index(self, attributes: dict[str, Any]) -> None:
        self._stored.setdefault(attributes["key"], {})[attributes["place"]] = attributes


def _optuna() -> ModuleType:
    try:
        import optuna
    except ImportError:
        raise MissingExtraError("optuna", "search", "a Study") from None
    return optuna


def _key(bench: Bench, task: Task, substeps: int) -> str:
    """The stage has no part in it: what one stage judged another need not."""
    return fingerprint(library(), bench.fingerprint, replace(task, stage=""), substeps)


def _described(trial: Trial) -> dict[str, Any]:
    errors = trial.errors
    return {
        "stage": trial.stage,
        "status": trial.status,
        "score": _written(trial.score),
        "spread": _written(trial.spread),
        "ratios": [_written(value) for value in trial.ratios],
        "seconds": trial.seconds,
        "observations": trial.observations,
        "level": trial.level,
        "refined_level": trial.refined_level,
        "substeps": trial.substeps,
        "errors": None
        if errors is None
        else base64.b64encode(errors.astype("<f8").tobytes()).decode(),
        "shape": None if errors is None else list(errors.shape),
        **{
            field.name: repr(getattr(trial.plan, field.name))
            for field in fields(trial.plan)
            if field.name != "ridge"  # which has a level
        },
    }


def _restored(task: Task, place: int, stored: dict[str, Any]) -> Trial:
    errors = stored["errors"]
    if errors is not None:
        values = np.frombuffer(base64.b64decode(errors), dtype="<f8")
        errors = values.astype(np.float64).reshape(stored["shape"])
    return Trial(
        plan=task.plan_of(place),
        level=stored["level"],
        refined_level=stored["refined_level"],
        stage=task.stage,
        observations=stored["observations"],
        score=float(stored["score"]),
        spread=float(stored["spread"]),
        ratios=tuple(float(value) for value in stored["ratios"]),
        errors=errors,
        status=stored["status"],
        seconds=stored["seconds"],
        substeps=stored["substeps"],
    )


def _written(value: float) -> float | str:
    """A number for JSON, which has neither infinity nor NaN; finite ones keep every bit."""
    return float(value) if math.isfinite(value) else str(float(value))


def _parameters(
    optuna: ModuleType, bench: Bench, task: Task, trial: Trial
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Numbers that the dashboard can draw; texts may not be, their choices being unknown."""
    real = optuna.distributions.FloatDistribution(1e-300, 1e300, log=True)
    whole = optuna.distributions.IntDistribution(0, 2**53)
    steps = bench.steps if task.steps is None else min(task.steps, bench.steps)
    numbers: dict[str, Any] = {"level": trial.level, "steps": steps}
    spaces = {"level": real, "steps": whole}
    lengths = candidates.lengths_of(trial.plan.kernel)
    if len(lengths) == 1:
        numbers["length_scale"], spaces["length_scale"] = lengths[0], real
    return numbers, spaces
