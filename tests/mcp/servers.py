"""Servers to put behind the proxy: one that answers like an MCP server without any library, so that a test knows every
byte it sends."""

ECHO = r"""
import json, os, sys
calls = 0
for line in sys.stdin.buffer:
    try:
        frame = json.loads(line)
    except ValueError:
        sys.stdout.buffer.write(b"!! not json, passed on\n"); sys.stdout.buffer.flush(); continue
    method, params = frame.get("method"), frame.get("params") or {}
    if method == "die":
        os._exit(params["code"])
    if method == "hang":
        continue
    if method == "say":
        print(params["text"], file=sys.stderr, flush=True); continue
    if "id" not in frame:
        continue
    answer = {"jsonrpc": "2.0", "id": frame["id"]}
    if method == "tools/list":
        answer["result"] = {"tools": [{"name": "look", "annotations": {"readOnlyHint": True}}, {"name": "send"}]}
    elif method == "tools/call":
        name = params["name"]
        if name == "broken":
            answer["error"] = {"code": -32602, "message": "no such tool"}
        else:
            calls += 1
            text = f"{name} {calls} " + "é" * params.get("arguments", {}).get("size", 0)
            answer["result"] = {"content": [{"type": "text", "text": text}], "isError": name == "bad"}
    else:
        answer["result"] = {"echo": params, "method": method}
    sys.stdout.buffer.write(json.dumps(answer, ensure_ascii=False).encode() + b"\n")
    sys.stdout.buffer.flush()
"""
