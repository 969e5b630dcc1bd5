#pragma once

namespace verbatim::test {

/// A server of tools as a script of the shell, which answers by the tool's name. It lists `echo` and, on a
/// second page, `second`, `lies` and `hangs`. The file $LOG gets a line when a call is cancelled, and at its
/// end.
inline constexpr const char* kScriptedServer = R"SH(
echo "some server is starting"
while read -r line; do
  id=${line#*'"id":'}; id=${id%%[,\}]*}
  say() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  case "$line" in
    *'"method":"initialize"'*) say '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *'"method":"tools/list"'*'"cursor":"2"'*)
      say '{"tools":[{"name":"second","description":7,"inputSchema":"no schema"},{"nameless":true},{"name":"lies","inputSchema":{"type":"object","properties":{"n":{"type":"number"}}},"outputSchema":{"type":"object","required":["sum"],"properties":{"sum":{"type":"number"}}}},{"name":"hangs"}]}' ;;
    *'"method":"tools/list"'*)
      say '{"tools":[{"name":"echo","description":"Says it again","inputSchema":{"type":"object","properties":{"s":{"type":"string"}},"required":["s"]}}],"nextCursor":"2"}' ;;
    *'"name":"echo"'*)
      token=${line#*'"progressToken":'}; token=${token%%[,\}]*}
      printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1,"total":2,"message":"half"}}\n' "$token"
      printf '{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{}}\n'
      read -r refusal
      case "$refusal" in *-32601*) ;; *) exit 9 ;; esac
      say '{"content":[{"type":"text","text":"you said it"},{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"resource","resource":{"uri":"file:///x","text":"inside"}}]}' ;;
    *'"name":"lies"'*) say '{"content":[],"structuredContent":{"sum":"five"}}' ;;
    *'"name":"json"'*) say '{"content":[{"type":"text","text":"{}"}],"structuredContent":{"sum":[5]}}' ;;
    *'"name":"fails"'*) say '{"isError":true,"content":[{"type":"text","text":"no such city"}]}' ;;
    *'"name":"error"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"bad arguments"}}\n' "$id" ;;
    *'"name":"odd"'*) say '"odd"' ;;
    *'"name":"dies"'*) echo "out of luck" >&2; exit 7 ;;
    *'"name":"large"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"' "$id"; head -c 100000000 /dev/zero | tr '\0' x; printf '"}]}}\n' ;;
    *'"name":"babbles"'*) yes babble ;;
    *'"name":"pings"'*) yes '{"jsonrpc":"2.0","id":"'"$(head -c 5000 /dev/zero | tr '\0' x)"'","method":"ping"}' ;;
    *'"name":"reports"'*)
      token=${line#*'"progressToken":'}; token=${token%%[,\}]*}
      for i in $(seq 1000); do printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%s}}\n' "$token" "$i"; done
      say '{"content":[{"type":"text","text":"reported"}]}' ;;
    *'"name":"members"'*) printf '{'; seq -f '"%g":1,' 3000 | tr -d '\n'; printf '"id":1}\n' ;;
    *'"name":"hangs"'*) ;;
    *'"name":"deaf"'*)
      trap 'echo asked >> "$LOG"; exit' TERM
      say '{"content":[]}'
      while :; do sleep 0.05; done ;;
    *'notifications/cancelled'*) echo cancelled >> "$LOG" ;;
  esac
done
sleep 0.1
echo over >> "$LOG"
)SH";

}  // namespace verbatim::test
