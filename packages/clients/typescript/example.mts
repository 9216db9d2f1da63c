/**
 * Lists hosts, watches them, asks for a clean, and reads why a request was refused.
 *
 * Usage: node example.mts https://HOST:PORT CA_FILE TOKEN_FILE; prints what it saw as JSON.
 */
import { readFileSync } from 'node:fs';
import { Code, ConnectError, createClient, type Interceptor } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { BadRequestSchema, ErrorInfoSchema } from './gen/google/rpc/error_details_pb.ts';
import { HostService, WatchHostsResponse_Kind } from './gen/rackwright/v1/host_pb.ts';

const [url = '', caFile = '', tokenFile = ''] = process.argv.slice(2);
const token = readFileSync(tokenFile, 'utf8').trim();

const showToken: Interceptor = (next) => (request) => {
  request.header.set('authorization', `Bearer ${token}`);
  return next(request);
};
const transport = createConnectTransport({
  baseUrl: url,
  httpVersion: '1.1',
  nodeOptions: { ca: readFileSync(caFile) },
  interceptors: [showToken],
});
const hosts = createClient(HostService, transport);

/** Page by page: a fleet is larger than an answer. */
async function listAll(): Promise<string[]> {
  const names: string[] = [];
  let pageToken = '';
  do {
    const page = await hosts.listHosts({ pageSize: 1, pageToken });
    names.push(...page.hosts.map(({ name }) => name));
    pageToken = page.nextPageToken;
  } while (pageToken !== '');
  return names;
}

/** What is there, up to the mark that says so; what changes comes behind it. */
async function watchPresent(): Promise<string[]> {
  const names: string[] = [];
  const end = new AbortController();
  try {
    for await (const event of hosts.watchHosts({}, { signal: end.signal })) {
      if (event.kind === WatchHostsResponse_Kind.SYNCED) end.abort();
      else names.push(event.host?.name ?? '');
    }
  } catch (error) {
    if (ConnectError.from(error).code !== Code.Canceled) throw error;
  }
  return names;
}

interface Refusal {
  readonly code: string;
  readonly reason: string;
  readonly fields: string[];
}

/** A program decides by code and reason; the message is for people. */
async function refusalOf(call: Promise<unknown>): Promise<Refusal | undefined> {
  try {
    await call;
    return undefined;
  } catch (thrown) {
    const error = ConnectError.from(thrown);
    const [info] = error.findDetails(ErrorInfoSchema);
    const violations = error.findDetails(BadRequestSchema).flatMap((each) => each.fieldViolations);
    const fields = violations.map(({ field }) => field);
    return { code: Code[error.code], reason: info?.reason ?? '', fields };
  }
}

const listed = await listAll();
const watched = await watchPresent();
const [name = ''] = listed;
// The same id again asks for the same clean, not for a second one: safe to repeat after a timeout.
const cleaned = await hosts.cleanHost({ name, requestId: 'example-1', reason: 'an example' });
const refused = await refusalOf(hosts.createHost({ hostId: 'H', host: { spec: {} } }));
const run = cleaned.status?.run?.kind !== undefined;
console.log(JSON.stringify({ listed, watched, cleaning: run, refused }));
