import json
from http.server import BaseHTTPRequestHandler, HTTPServer

from cloudevents.core.bindings.http import HTTPMessage, from_http_event


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        e = from_http_event(HTTPMessage(dict(self.headers), body))
        print(e.get_id(), e.get_type(), e.get_source(), e.get_datacontenttype(), json.dumps(e.get_data(), separators=(",", ":"), ensure_ascii=False), flush=True)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args):
        pass


server = HTTPServer(("127.0.0.1", 0), Receiver)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
