"""Compares disttf's mlp with scikit-learn's of the same shape, on scikit-learn's tables.

    python3 sklearn_tables.py --disttf build/release/disttf --splits 10

For each table and split both train on the same rows: one hidden layer of 100 with ReLU, adam at
0.001, batches of 32 (disttf: two workers, 16 each), 60 epochs, standardized columns. Prints a line
for each table: mean and standard deviation over the splits of the accuracy on the test rows, or of
the mean absolute error. Exits with 77 and a message if scikit-learn is not installed.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import warnings

try:
    import numpy
    from sklearn import datasets, model_selection, neural_network, preprocessing
except ImportError as error:
    print(f"scikit-learn cannot be imported: {error}")
    sys.exit(77)

EPOCHS = 60
BATCH = 32
TABLES = {
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "breast_cancer": datasets.load_breast_cancer,
    "diabetes": lambda: datasets.load_diabetes(scaled=False),
}


def of_sklearn(rows, labels, test_rows, test_labels, number, seed):
    """Accuracy, or mean absolute error."""
    scaler = preprocessing.StandardScaler().fit(rows)
    kind = neural_network.MLPRegressor if number else neural_network.MLPClassifier
    model = kind(
        hidden_layer_sizes=(100,),
        learning_rate_init=0.001,
        batch_size=BATCH,
        max_iter=EPOCHS,
        n_iter_no_change=EPOCHS,
        alpha=0,
        random_state=seed,
    )
    if not number:
        return model.fit(scaler.transform(rows), labels).score(scaler.transform(test_rows), test_labels)
    mean, deviation = labels.mean(), labels.std()
    model.fit(scaler.transform(rows), (labels - mean) / deviation)
    told = model.predict(scaler.transform(test_rows)) * deviation + mean
    return numpy.abs(told - test_labels).mean()


def of_disttf(disttf, directory, parts, number, seed):
    for part, (rows, labels) in parts.items():
        numpy.savetxt(
            os.path.join(directory, part + ".csv"), numpy.c_[rows, labels], delimiter=",", fmt="%.9g"
        )
    steps = -(-len(parts["train"][0]) // BATCH) * EPOCHS
    told = subprocess.run(
        [
            disttf, "launch", "--workers=2", "--ps=1", "--data=" + directory,
            "--data_dir=" + os.path.join(directory, "converted"),
            "--label_type=" + ("number" if number else "class"), "--hidden_units=100",
            f"--batch_size={BATCH // 2}", f"--train_steps={steps}", "--learning_rate=0.001",
            "--learning_rate_decay=none", f"--seed={seed + 1}",
        ],
        capture_output=True, text=True, check=True,
    ).stdout
    return float(re.search(r"(?:accuracy|absolute error): ([0-9.]+)", told).group(1))


def compare(name, disttf, splits):
    data = TABLES[name]()
    number = name == "diabetes"
    ours, theirs = [], []
    for seed in range(splits):
        rows, test_rows, labels, test_labels = model_selection.train_test_split(
            data.data, data.target, test_size=0.3, random_state=seed,
            stratify=None if number else data.target,
        )
        test = (test_rows, test_labels)
        parts = {"train": (rows, labels), "validation": test, "test": test}
        with tempfile.TemporaryDirectory() as directory:
            ours.append(of_disttf(disttf, directory, parts, number, seed))
        theirs.append(of_sklearn(rows, labels, *test, number, seed))
    what = "mean absolute error" if number else "accuracy"
    print(
        f"{name:14} {what}: disttf {numpy.mean(ours):.4f} (deviation {numpy.std(ours):.4f}), "
        f"scikit-learn {numpy.mean(theirs):.4f} ({numpy.std(theirs):.4f})",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--disttf", default="build/release/disttf")
    parser.add_argument("--splits", type=int, default=10)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")  # scikit-learn warns that it has not converged in 60 epochs
    for name in TABLES:
        compare(name, options.disttf, options.splits)


if __name__ == "__main__":
    main()
