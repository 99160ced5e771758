#!/usr/bin/env bash
# Show one Agent, one Run and its result on the cluster of KUBECONFIG.
#
# README.md shows what this prints (TestDemo compares them). Each command is run
# exactly as it is shown, with kubectl and kubectl-deckhand in PATH. The commands
# that are not shown only prepare the cluster for another demo.
set -euo pipefail
cd "$(dirname "$0")/.."

show() {
	printf '\n$ %s\n' "$1"
	bash -euo pipefail -c "$1"
}

kubectl -n demo delete run demo --ignore-not-found >/dev/null # a Run is done once

show 'kubectl apply -f examples/demo/model-server.yaml'
kubectl -n demo rollout restart deployment model-server >/dev/null # its image may be new under the same name
kubectl -n demo rollout status deployment model-server --timeout=5m >/dev/null

show 'kubectl config set-context --current --namespace=demo'
show 'kubectl apply -f examples/demo/agent.yaml'
show 'kubectl apply -f examples/demo/run.yaml'
show 'kubectl deckhand logs demo --follow'
show 'kubectl get models,agents,runs'
show $'kubectl get run demo -o jsonpath=\'{.status.progress.result.text}{"\\n"}\''

[ "$(kubectl get run demo -o jsonpath='{.status.conditions[?(@.type=="Succeeded")].status}')" = True ]
