"""A small MCP server over stdio, which has a key and can be made to die."""

import json
import os
import sys

TOOLS = [{"name": name, "description": name, "inputSchema": {"type": "object"}} for name in ("tide", "sink")]


def answer(method, params):
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "harbor", "version": "1"}}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call" and params["name"] == "sink":
        os._exit(3)
    if method == "tools/call":
        return {"content": [{"type": "text", "text": f"the key has {len(os.environ['HARBOR_KEY'])} letters"}]}
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = answer(message["method"], message.get("params") or {})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
