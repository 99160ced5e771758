#!/usr/bin/env bash
# One Agent, one Run, and what came of it, on the cluster of KUBECONFIG.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="${CLUSTER_DIR:?}/bin:$PATH"

say() { printf '\n$ %s\n' "$*"; "$@"; }

say kubectl apply -f examples/demo/model-server.yaml
kubectl -n demo rollout restart deployment model-server >/dev/null # its image may be new under the same name
kubectl -n demo rollout status deployment model-server --timeout=60s
kubectl -n demo delete run demo --ignore-not-found --wait >/dev/null # a Run is done once

say kubectl apply -f examples/demo/agent.yaml
say kubectl apply -f examples/demo/run.yaml
kubectl config set-context --current --namespace=demo >/dev/null

kubectl wait --for=jsonpath='{.status.attempt.podUID}' run/demo --timeout=60s >/dev/null
pod=$(kubectl get run demo -o jsonpath='{.status.attempt.pod}')
kubectl wait --for=jsonpath='{.status.containerStatuses[0].started}' "pod/$pod" --timeout=60s >/dev/null || true
printf '\n$ kubectl logs -f %s\n' "$pod"
kubectl logs -f "$pod" | tee dist/demo.log | go run ./hack/follow

say kubectl wait --for=condition=Finished run/demo --timeout=60s
say kubectl get models,agents,runs

printf '\nThe answer:\n'
kubectl get run demo -o jsonpath='{.status.progress.result.text}{"\n"}'
printf '\nThe file that the agent wrote, as it read it back:\n'
go run ./hack/follow -tool Read <dist/demo.log
printf '\n'
kubectl get run demo -o jsonpath='{.status.conditions[?(@.type=="Succeeded")].status} {.status.conditions[?(@.type=="Succeeded")].reason}' |
	sed -e 's/^True/run\/demo Succeeded/; s/^False/run\/demo Failed/; s/^Unknown/run\/demo Unknown/'
printf '\n'
[ "$(kubectl get run demo -o jsonpath='{.status.conditions[?(@.type=="Succeeded")].status}')" = True ]
