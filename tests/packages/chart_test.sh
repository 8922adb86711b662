#!/bin/bash
# Usage: chart_test.sh BUILD
#
# helm renders the packed chart like the chart's folder, except for the version. The rendered image is that of the
# packages, and Kubernetes accepts its labels.
# shellcheck source=common.sh
. "${BASH_SOURCE%/*}/common.sh"

helm=$source/build/tools/helm/helm
[ -e "$helm" ] || skip "$helm is not there: .ci/tools helm makes it"
export HELM_CONFIG_HOME=$scratch HELM_CACHE_HOME=$scratch HELM_DATA_HOME=$scratch
version=$("$1/disttf" --version | cut -d ' ' -f 2)
chart=$1/packages/disttf-$version.tgz
[ -e "$chart" ] || fail "$chart is not there"
[ "$("$helm" show chart "$chart" | sed -n 's/^\(appVersion\|version\): //p' | sort -u | tr -d '"')" = "$version" ] ||
  fail "the chart is not of $version: $("$helm" show chart "$chart")"

made() {
  "$helm" template run1 "$1" --kube-version 1.29.0 --set chief=true,flags.train_steps=500,secret=mnist-secret >"$scratch/$2" ||
    fail "helm makes nothing of $1"
}
without_version() { sed -E 's/^( *(helm.sh.chart|app.kubernetes.io.version|image): ).*/\1/' "$scratch/$1"; }
made "$chart" packed
made deploy/helm/disttf folder
diff <(without_version folder) <(without_version packed) || fail "the packed chart makes something else"
grep -q 'kind: Job' "$scratch/packed" || fail "no Job in $(cat "$scratch/packed")"

image=$(sed -n 's/^ *image: "\(.*\)"/\1/p' "$scratch/packed" | sort -u)
[ "$image" = "disttf:${version//+/-}" ] || fail "the chart's image is $image"
bad=$(sed -En 's/^ *(helm.sh.chart|app.kubernetes.io.version): "?([^"]*)"?$/\2/p' "$scratch/packed" |
  grep -vE '^[A-Za-z0-9][-A-Za-z0-9_.]*$') && fail "no value of a label: $bad"
exit 0
