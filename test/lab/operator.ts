/**
 * One call of the operators' API from inside the lab's network:
 *
 *     node operator.ts ENDPOINT CA_FILE TOKEN_FILE Service.Method <request.json >responses.jsonl
 *
 * One line of JSON for each response; the error text and 1 when the call fails.
 */
import { readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { create, type DescService, fromJsonString, toJsonString } from '@bufbuild/protobuf';
import {
  CredentialService,
  connect,
  createClient,
  ErasureCertificateService,
  HostService,
  RackService,
} from '@rackwright/api';

type AnyMethod = (request: unknown) => Promise<never> | AsyncIterable<never>;

const SERVICES: Readonly<Record<string, DescService>> = {
  CredentialService,
  ErasureCertificateService,
  HostService,
  RackService,
};

async function main(words: readonly string[]): Promise<void> {
  const [endpoint = '', caFile = '', tokenFile = '', name = ''] = words;
  const [serviceName = '', methodName] = name.split('.');
  const service = SERVICES[serviceName];
  const method = service?.methods.find((one) => one.name === methodName);
  if (service === undefined || method === undefined) throw new Error(`unknown method "${name}"`);
  const channel = connect({ target: endpoint, caPem: readFileSync(caFile, 'utf8') });
  const token = readFileSync(tokenFile, 'utf8').trim();
  const client = createClient(service, channel, { headers: { authorization: `Bearer ${token}` } });
  const call = (client as Readonly<Record<string, AnyMethod>>)[method.localName];
  const asked = (await text(process.stdin)).trim();
  const request = asked === '' ? create(method.input) : fromJsonString(method.input, asked);
  const answer = call?.(request);
  const print = (message: never): void =>
    void process.stdout.write(`${toJsonString(method.output, message)}\n`);
  if (answer instanceof Promise) print(await answer);
  else for await (const message of answer ?? []) print(message);
  channel.close();
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
}
