"""Hand-over of selectors and records to other tools. A test of a missing tool is skipped."""

import json

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import tamis
from tamis.contract import Record
from tamis.criteria import Scatter
from tamis.evaluation import CrossValidation, evaluate
from tamis.exceptions import PiecesFailed
from tamis.meta import Probes
from tamis.search import FloatingForward, Ranking

# other tools warn about their own dependencies
pytestmark = pytest.mark.filterwarnings("default")

SELECTORS = {
    "recipe": lambda: tamis.recipe("mrmr", n_features_to_select=4),
    "search": lambda: FloatingForward(Scatter("J3"), n_features_to_select=4),
    "meta": lambda: Probes(Ranking(Scatter("J3")), random_state=0),
}


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True)


@pytest.fixture(params=SELECTORS)
def fitted(request, wine):
    return SELECTORS[request.param]().fit(*wine)


def pipeline(**options):
    select = tamis.recipe("mrmr", **({"n_features_to_select": 4} | options))
    return make_pipeline(StandardScaler(), select, LogisticRegression())


def test_joblib_restores_a_selector(fitted, wine, tmp_path):
    joblib.dump(fitted, tmp_path / "search.joblib")
    loaded = joblib.load(tmp_path / "search.joblib")
    np.testing.assert_array_equal(loaded.transform(wine[0]), fitted.transform(wine[0]))
    assert loaded.columns == fitted.columns
    assert loaded.record_.to_dict() == fitted.record_.to_dict()


def test_skops_restores_a_selector(fitted, wine):
    io = pytest.importorskip("skops.io")
    data = io.dumps(fitted)
    trusted = io.get_untrusted_types(data=data)
    assert all(name.startswith(("tamis.", "numpy.", "collections.")) for name in trusted), trusted
    loaded = io.loads(data, trusted=trusted)
    np.testing.assert_array_equal(loaded.transform(wine[0]), fitted.transform(wine[0]))
    assert loaded.columns == fitted.columns


def test_skops_restores_a_pipeline_with_categories():
    io = pytest.importorskip("skops.io")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"c": ["a", "b", "c", None] * 30, "x": rng.normal(size=120)})
    y = (frame["c"] == "a").to_numpy()
    fitted = tamis.select(frame, y, "mrmr", n_features_to_select=1)
    pipeline = fitted.to_pipeline(frame, y, estimator=LogisticRegression())
    data = io.dumps(pipeline)
    loaded = io.loads(data, trusted=io.get_untrusted_types(data=data))
    np.testing.assert_array_equal(loaded.predict(frame), pipeline.predict(frame))


def test_onnx_gives_the_predictions_of_the_pipeline(wine):
    skl2onnx = pytest.importorskip("skl2onnx")
    runtime = pytest.importorskip("onnxruntime")
    from skl2onnx.operator_converters.feature_selection import convert_sklearn_feature_selection
    from skl2onnx.shape_calculators.feature_selection import calculate_sklearn_select

    pipe = pipeline().fit(*wine)
    kind = type(pipe[1])
    skl2onnx.update_registered_converter(
        kind, f"Tamis{kind.__name__}", calculate_sklearn_select, convert_sklearn_feature_selection
    )
    X = wine[0].astype(np.float32)
    exported = skl2onnx.to_onnx(pipe, X[:1])
    session = runtime.InferenceSession(
        exported.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    classes = session.run(None, {session.get_inputs()[0].name: X})[0]
    np.testing.assert_array_equal(classes, pipe.predict(X))


def test_mlflow_stores_the_model_and_the_record(wine, tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    pipe = pipeline().fit(*wine)
    with mlflow.start_run():
        mlflow.log_dict(pipe[1].record_.to_dict(), "record.json")
        model = mlflow.sklearn.log_model(
            pipe, name="model", pip_requirements=["tamis"], serialization_format="cloudpickle"
        )
        run = mlflow.active_run()
    loaded = mlflow.sklearn.load_model(model.model_uri)
    np.testing.assert_array_equal(loaded.predict(wine[0]), pipe.predict(wine[0]))
    stored = mlflow.artifacts.load_text(f"{run.info.artifact_uri}/record.json")
    assert Record.from_dict(json.loads(stored)).expression == pipe[1].record_.expression


def test_optuna_searches_over_the_parameters_of_a_selector(wine):
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)

    def objective(trial):
        size = trial.suggest_int("n_features_to_select", 1, 8)
        return cross_val_score(pipeline(n_features_to_select=size), *wine, cv=3).mean()

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=4)
    best = study.best_params["n_features_to_select"]
    expected = cross_val_score(pipeline(n_features_to_select=best), *wine, cv=3).mean()
    assert study.best_value == pytest.approx(expected)


def test_autogluon_generates_only_the_selected_columns():
    generators = pytest.importorskip("autogluon.features.generators")

    class SelectedColumns(generators.AbstractFeatureGenerator):
        def __init__(self, selector, **options):
            super().__init__(**options)
            self.selector = selector

        def _fit_transform(self, X, y, **options):
            self.selector = clone(self.selector).fit(X, y)
            kept = self.feature_metadata_in.keep_features(self.selector.columns)
            return self._transform(X), kept.type_group_map_special

        def _transform(self, X):
            return X[self.selector.columns]

        @staticmethod
        def get_default_infer_features_in_args():
            return {"valid_raw_types": ["int", "float"]}

    X, y = load_wine(return_X_y=True, as_frame=True)
    expected = tamis.recipe("mrmr", n_features_to_select=4).fit(X, y).columns
    last = SelectedColumns(tamis.recipe("mrmr", n_features_to_select=4))
    generator = generators.AutoMLPipelineFeatureGenerator(post_generators=[last], verbosity=0)
    table = X.assign(batch=["first", "second"] * 89, year="2026")
    assert generator.fit_transform(table, y=y).columns.tolist() == expected
    assert generator.transform(table[:3]).columns.tolist() == expected


def test_skrub_pipelines_select_columns():
    skrub = pytest.importorskip("skrub")
    frame = load_wine(as_frame=True).frame
    data = skrub.var("data", frame)
    X, y = data.drop(columns="target").skb.mark_as_X(), data["target"].skb.mark_as_y()
    selected = X.skb.apply(tamis.recipe("mrmr", n_features_to_select=3), y=y)
    learner = selected.skb.apply(LogisticRegression(max_iter=5000), y=y).skb.make_learner(
        fitted=True
    )
    assert learner.predict({"data": frame}).shape == (178,)
    assert selected.skb.preview().shape == (178, 3)


def test_notebooks_show_the_selected_columns(wine):
    frame = load_wine(as_frame=True).data
    search = tamis.recipe("mrmr", n_features_to_select=2).fit(frame, wine[1])
    shown = search._repr_mimebundle_()["text/html"]
    assert "2 of 13 columns are kept" in shown
    assert all(name in shown for name in search.columns)


class Limited(LogisticRegression):
    """A model that refuses more than 500 columns, as TabPFN does."""

    def fit(self, X, y):
        if X.shape[1] > 500:
            raise ValueError("more than 500 columns")
        return super().fit(X, y)


@pytest.fixture
def wide():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 600))
    X[:, :5] += 2 * y[:, None]
    return X, y


def test_a_selector_makes_wide_tables_fit_a_model_with_a_limit(wide):
    select = tamis.recipe("mrmr", n_features_to_select=20)
    several = {"alone": Limited(), "selected": make_pipeline(select, Limited())}
    with pytest.warns(PiecesFailed, match="more than 500 columns"):
        results = evaluate(several, wide, CrossValidation(3))
    assert {failure.method for failure in results.failures} == {"alone"}
    assert np.mean(list(results.values("error", "selected").values())) < 0.2


@pytest.mark.parametrize(
    ("package", "name"), [("tabpfn", "TabPFNClassifier"), ("tabicl", "TabICLClassifier")]
)
def test_pretrained_models_predict_from_selected_columns(package, name, wide):
    model = getattr(pytest.importorskip(package), name)
    X, y = wide
    try:
        model().fit(X[:, :5], y).predict(X[:2, :5])
    except Exception as error:  # each package has errors of its own
        pytest.skip(f"the weights of {package} are not available: {error}")
    pipe = make_pipeline(tamis.recipe("mrmr", n_features_to_select=20), model())
    assert np.mean(pipe.fit(X[:40], y[:40]).predict(X[40:]) == y[40:]) > 0.8
