/**
 * An HTTP server as Node has it: one file, read into memory before, sent as it is to whoever asks.
 *
 *   node test/bench/http/bare.main.ts FILE PORT
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

const [path = '', port = '80'] = process.argv.slice(2);
const bytes = readFileSync(path);
const headers = { 'content-type': 'application/octet-stream', 'content-length': bytes.length };
createServer((_request, response) => {
  response.writeHead(200, headers);
  response.end(bytes);
}).listen(Number(port), '127.0.0.1');
