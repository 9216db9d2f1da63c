/** Validation of the requests to a device that switches a socket, in a host's spec. */
import type { BmcEndpoint, PowerWebhook } from '@rackwright/messages';
import { quote, type Violations } from '../../call/violations.ts';
import { isJson } from '../../steps/index.ts';
import { protocolOf } from '../index.ts';

const pathCharactersMax = 512;
const bodyCharactersMax = 1_024;
const valuesMax = 8;
const methods: readonly string[] = ['', 'GET', 'POST', 'PUT'];
/** Headers that define a message's framing or destination (RFC 9110 §7.2, RFC 9112 §6). */
const framing: ReadonlySet<string> = new Set([
  'host',
  'connection',
  'content-length',
  'content-type',
  'transfer-encoding',
  'te',
  'trailer',
  'upgrade',
  'expect',
  'accept',
]);

/** Adds its violations; it belongs to its protocol, which requires it. */
export function checkWebhook(path: string, bmc: BmcEndpoint, violations: Violations): void {
  const { id, name } = protocolOf(bmc.protocol);
  const { webhook } = bmc;
  const isNeeded = id === 'webhook';
  if (webhook === undefined) {
    const problem = 'is missing; give on_path, off_path and state_path';
    if (isNeeded) violations.add(`${path}.webhook`, problem);
  } else if (!isNeeded) {
    violations.add(`${path}.webhook`, `does not belong to ${name}; leave it out`);
  } else checkCalls(`${path}.webhook`, bmc, webhook, violations);
  if (bmc.wakeOnLan && !isNeeded && id !== 'manual') {
    violations.add(`${path}.wake_on_lan`, `does not belong to ${name}, which switches it on`);
  }
}

function checkCalls(
  path: string,
  { port, certificateSha256 }: BmcEndpoint,
  webhook: PowerWebhook,
  violations: Violations,
): void {
  const { method, onBody, offBody, expectedStatus: status, stateField, secretHeader } = webhook;
  const add = (field: string, why: string) => violations.add(`${path}.${field}`, why);
  checkPaths(path, webhook, violations);
  if (!methods.includes(method)) add('method', `is ${quote(method)}; give GET, POST or PUT`);
  for (const [field, body] of [['on_body', onBody] as const, ['off_body', offBody] as const]) {
    if (body.length > bodyCharactersMax || (body !== '' && !isJson(body))) {
      add(field, `must be JSON of at most ${bodyCharactersMax} characters, or empty`);
    }
    if (body !== '' && method === 'GET') add(field, 'belongs to POST and PUT; leave it empty');
  }
  if (status !== undefined && (status < 200 || status > 299)) {
    add('expected_status', `is ${status}; give 200 to 299, or leave it unset`);
  }
  if (!/^$|^(?=.{1,128}$)[\w$:-]+(\.[\w$:-]+)*$/.test(stateField)) {
    add('state_field', `is ${quote(stateField)}; give names joined by dots, as "relays.0.on"`);
  }
  checkValues(path, webhook, violations);
  const header = secretHeader.toLowerCase();
  if (header !== '' && (!/^[a-z0-9-]{1,64}$/.test(header) || framing.has(header))) {
    add('secret_header', `is ${quote(secretHeader)}; give a header like "X-Api-Key"`);
  }
  if (!webhook.plainHttp) return;
  if (port === undefined) add('plain_http', 'needs a port, as 80');
  if (certificateSha256 !== '') add('plain_http', 'shows no certificate; pin none');
}

function checkPaths(path: string, webhook: PowerWebhook, violations: Violations): void {
  const paths = {
    on_path: webhook.onPath,
    off_path: webhook.offPath,
    state_path: webhook.statePath,
  };
  for (const [field, each] of Object.entries(paths)) {
    // Nothing that servers could interpret in two ways.
    const isFit = /^\/(?!\/)[!-~]*$/.test(each) && !/[\\#]|(^|\/)\.{1,2}(\/|\?|$)/.test(each);
    if (isFit && each.length <= pathCharactersMax) continue;
    const wanted = `a leading "/" and at most ${pathCharactersMax} printable characters`;
    violations.add(
      `${path}.${field}`,
      `is ${quote(each)}; give ${wanted}, without "..", "\\" or "#"`,
    );
  }
  if (webhook.onPath !== webhook.offPath || webhook.onBody !== webhook.offBody) return;
  violations.add(`${path}.off_path`, 'and off_body ask for the same as on; they must differ');
}

function checkValues(path: string, webhook: PowerWebhook, violations: Violations): void {
  const { onValues, offValues } = webhook;
  for (const [field, values] of [
    ['on_values', onValues] as const,
    ['off_values', offValues] as const,
  ]) {
    if (values.length <= valuesMax && values.every(({ length }) => length >= 1 && length <= 64))
      continue;
    const wanted = `at most ${valuesMax} words of 1 to 64 characters`;
    violations.add(`${path}.${field}`, `has ${values.length} words; give ${wanted}`);
  }
  const on = new Set(onValues.map((word) => word.toLowerCase()));
  const both = offValues.find((word) => on.has(word.toLowerCase()));
  if (both !== undefined)
    violations.add(`${path}.off_values`, `has ${quote(both)}, which means on`);
}
